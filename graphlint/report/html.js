"use strict";
(() => {
  const controls = document.querySelector(".controls");
  const main = document.getElementById("findings");
  const articles = [...main.querySelectorAll("article")];
  const openRule = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", openRule);
  openRule();
  if (!controls) return;
  controls.hidden = false;
  const search = controls.querySelector("[type=search]");
  const boxes = [...controls.querySelectorAll("[type=checkbox]")];
  const grouping = controls.querySelector("select");
  const count = controls.querySelector("output");
  const rank = { error: 0, warning: 1, info: 2 };
  const keyOf = (article) => grouping.value === "severity" ? rank[article.dataset.severity] : article.dataset[grouping.value];
  const titleOf = (article) => grouping.value === "rule" ? article.dataset.rule + " " + article.dataset.name : article.dataset[grouping.value];

  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const levels = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const order = articles.map((article, at) => [keyOf(article), at, article]);
    order.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
    main.replaceChildren();
    let group, shown = 0;
    for (const [key, , article] of order) {
      const text = (article.dataset.rule + " " + article.dataset.name + " " + article.textContent + " " + article.dataset.file).toLowerCase();
      const visible = levels.has(article.dataset.severity) && words.every((word) => text.includes(word));
      article.hidden = !visible;
      if (visible && key !== group) {
        const heading = document.createElement("h2");
        heading.className = "group";
        heading.textContent = titleOf(article);
        main.append(heading);
        group = key;
      }
      shown += visible;
      main.append(article);
    }
    count.textContent = shown === articles.length ? "" : shown + " of " + articles.length + " shown";
  };
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", update);
  grouping.addEventListener("change", update);
  update();
})();
