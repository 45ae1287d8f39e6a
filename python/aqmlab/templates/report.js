// Replaces the pictures by interactive charts. It is bundled with Vega, so that nothing is fetched.
for (const script of document.querySelectorAll('script[id^="spec-"]')) {
  const place = document.getElementById(script.id.replace("spec", "figure"));
  const stage = document.createElement("div");
  const actions = { export: true, source: false, compiled: false, editor: false };
  vegaEmbed(stage, JSON.parse(script.textContent), { renderer: "svg", actions })
    .then(() => place.replaceChildren(stage));
}
