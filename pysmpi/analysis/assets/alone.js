/* The animation without the rest of the page, in a file or in a notebook. */

async function start() {
  const runs = await readRuns();
  const options = JSON.parse(document.getElementById("options").textContent);
  const player = new Player(runs);
  document.querySelector("main").append(player.panel);
  // A notebook makes room for its height.
  const fit = () => {
    try {
      if (window.frameElement) window.frameElement.style.height = document.body.scrollHeight + 4 + "px";
    } catch { /* a page of another origin */ }
  };
  const draw = () => { player.draw(true); fit(); };
  followTheme(draw);
  if (options.call) player.choose(options.call - 1);
  else if (options.window) player.span(...options.window);
  player.now = 0;
  draw();
  addEventListener("resize", draw);
  document.addEventListener("keydown", (event) => { if (event.target === document.body) player.key(event); });
  window.pysmpi = { runs, player };
}
start();
