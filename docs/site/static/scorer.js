// How the search ranks pages. The theme's rule counts the best word alone, so pages that have any one of the words in
// a title tie, and the alphabet decides. Here the share of the words in the title counts, too.
var Scorer = {
  score: ([, title, , , score]) => {
    const stemmer = new Stemmer();
    const stems = (text) =>
      text
        .toLowerCase()
        .split(/[^\p{L}\p{N}_]+/u)
        .filter((word) => word && !stopwords.has(word))
        .map((word) => stemmer.stemWord(word));
    const asked = stems(new URLSearchParams(window.location.search).get("q") ?? "");
    const named = new Set(stems(title));
    return score + (20 * asked.filter((stem) => named.has(stem)).length) / Math.max(asked.length, 1);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
