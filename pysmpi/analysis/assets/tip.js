/* Tooltip. */

const tip = document.getElementById("tip");
function showTip(event, head, lines) {
  tip.replaceChildren(element("b", {}, head), ...lines.flatMap((line, i) => i ? [document.createElement("br"), line] : [line]));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
}
function hideTip() { tip.hidden = true; }
