// Sorts tables by a click on a head, or by Enter on it. Numbers before texts; again: the other way.
(function () {
  "use strict";
  function value(row, column) {
    var text = row.cells[column].textContent.trim();
    var number = parseFloat(text);
    return isNaN(number) ? text : number;
  }
  function compared(one, other) {
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return one < other ? -1 : one > other ? 1 : 0;
  }
  function sort(table, head, column) {
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows);
    var numeric = rows.some(function (row) { return typeof value(row, column) === "number"; });
    var before = head.getAttribute("aria-sort");
    // The highest score first; a second click turns the order.
    var down = before ? before === "ascending" : numeric;
    rows.sort(function (one, other) {
      var first = value(one, column), second = value(other, column);
      if (typeof first !== typeof second) return compared(first, second);
      return down ? compared(second, first) : compared(first, second);
    });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) {
      cell.removeAttribute("aria-sort");
    });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.forEach(function (row) { body.appendChild(row); });
  }
  function prepare(table) {
    if (!table.tHead || !table.tBodies.length) return;
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      head.tabIndex = 0;
      head.style.cursor = "pointer";
      head.title = "sort";
      head.addEventListener("click", function () { sort(table, head, column); });
      head.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          sort(table, head, column);
        }
      });
    });
  }
  document.addEventListener("DOMContentLoaded", function () {
    var found = document.querySelectorAll("table.sortable, section#leaderboard table");
    Array.prototype.forEach.call(found, prepare);
  });
})();
