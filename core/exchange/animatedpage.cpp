// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/animatedpage.h"

#include "core/base/diagnostic.h"
#include "core/exchange/picturetheme.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

// SVG of one veil per column and of the line at its left edge, in the SVG's own units.
std::string veils(const Picture& picture, std::string_view ground, std::string_view line)
{
    std::string shapes;
    for (const Rectangle& area : picture.times) {
        std::string place[4];
        const double values[] = {area.x, area.y, area.width + 1, area.height}; // a line at the very end has a width
        for (int i = 0; i < 4; ++i)
            appendNumber(place[i], values[i]);
        shapes += fmt::format("<rect class=\"ahead\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
                              "fill-opacity=\"0.86\"/>\n<rect class=\"now\" x=\"{}\" y=\"{}\" width=\"1.5\" "
                              "height=\"{}\" fill=\"{}\"/>\n",
                              place[0], place[1], place[2], place[3], ground, place[0], place[1], place[3], line);
    }
    return shapes;
}

constexpr std::string_view script = R"(
const step = { end: END_NS, seconds: SECONDS };
const ahead = [...document.querySelectorAll('.ahead')], lines = [...document.querySelectorAll('.now')];
const places = ahead.map(veil => ({ x: +veil.getAttribute('x'), width: veil.getAttribute('width') - 1 }));
const slider = document.getElementById('time'), words = document.getElementById('words');
const button = document.getElementById('play');
const units = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
const unit = units.find(([size]) => step.end >= 2 * size) || units[3];
const inWords = time => (time / unit[0]).toFixed(unit[0] === 1 ? 0 : 2) + ' ' + unit[1];
let share = 0, playing = false, last = 0;
function show() {
  places.forEach((place, i) => {
    const x = place.x + share * place.width;
    ahead[i].setAttribute('x', x);
    ahead[i].setAttribute('width', place.x + place.width + 1 - x);
    lines[i].setAttribute('x', x);
  });
  slider.value = Math.round(share * 1000);
  words.textContent = inWords(share * step.end) + ' of ' + inWords(step.end);
}
function tick(now) {
  if (!playing) return;
  share = Math.min(1, share + (now - last) / 1000 / step.seconds);
  last = now;
  show();
  if (share < 1) requestAnimationFrame(tick); else setTimeout(() => { if (playing) play(true, 0); }, 1500);
}
function play(on, from) {
  playing = on;
  button.textContent = on ? 'Pause' : 'Play';
  if (from !== undefined) share = from;
  if (!on) return;
  if (share >= 1) share = 0;
  last = performance.now();
  requestAnimationFrame(tick);
}
button.onclick = () => play(!playing);
slider.oninput = () => { play(false); share = slider.value / 1000; show(); };
document.onkeydown = event => {
  if (event.key === ' ' && event.target !== button) { event.preventDefault(); play(!playing); }
};
show();
play(!matchMedia('(prefers-reduced-motion: reduce)').matches);
)";

void replaceFirst(std::string& text, std::string_view what, const std::string& with)
{
    text.replace(text.find(what), what.size(), with);
}

} // namespace

std::string animatedPage(const Picture& picture, double seconds)
{
    if (!(seconds >= 0.1 && seconds <= 3600))
        throw Error("animation", fmt::format("{:g} s", seconds), "between 0.1 s and an hour");
    const PictureTheme& theme = picture.colours == PictureColours::Dark    ? darkTheme
                                : picture.colours == PictureColours::Light ? lightTheme
                                                                           : paperTheme;
    const std::size_t titleFrom = picture.svg.find("<title>") + 7;
    const std::string title = picture.svg.substr(titleFrom, picture.svg.find("</title>") - titleFrom);
    const std::size_t end = picture.svg.rfind("</svg>");
    const std::string svg = picture.svg.substr(0, end) + veils(picture, theme.background, theme.text) + "</svg>\n";
    std::string code(script);
    replaceFirst(code, "END_NS", std::to_string(picture.end));
    replaceFirst(code, "SECONDS", fmt::format("{:g}", seconds));
    return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ margin: 0; background: {ground}; color: {text}; font: 14px sans-serif; }}
main {{ max-width: {width:.0f}px; margin: 0 auto; padding: 12px; }}
svg {{ display: block; width: 100%; height: auto; }}
.bar {{ display: flex; gap: 12px; align-items: center; padding: 10px 0; }}
.bar input {{ flex: 1; }}
#words {{ font-family: monospace; min-width: 16em; text-align: right; }}
button {{ min-width: 5em; font: inherit; }}
</style>
</head>
<body>
<main>
{svg}<div class="bar">
<button id="play" type="button">Play</button>
<input id="time" type="range" min="0" max="1000" value="0" aria-label="Time">
<span id="words"></span>
</div>
</main>
<script>{code}</script>
</body>
</html>
)",
                       fmt::arg("title", title), fmt::arg("ground", theme.background), fmt::arg("text", theme.text),
                       fmt::arg("width", picture.width), fmt::arg("svg", svg), fmt::arg("code", code));
}

} // namespace pipewright
