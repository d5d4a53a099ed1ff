// What is wrong with the labels of the page's charts: which leave their picture, and which lie on one another. Boxes are those that
// the browser laid out, turned as their text is.
(() => {
  const corners = (text) => {
    const box = text.getBBox(), to = text.getScreenCTM();
    const at = (x, y) => [to.a * x + to.c * y + to.e, to.b * x + to.d * y + to.f];
    const trim = box.height * 0.14;  // ascenders and descenders that the letters do not fill
    return [at(box.x, box.y + trim), at(box.x + box.width, box.y + trim), at(box.x + box.width, box.y + box.height - trim),
      at(box.x, box.y + box.height - trim)];
  };
  const apart = (a, b) => [a, b].some((shape) => shape.some(([x1, y1], i) => {
    const [x2, y2] = shape[(i + 1) % shape.length], nx = y1 - y2, ny = x2 - x1, length = Math.hypot(nx, ny) || 1;
    const over = (points) => points.map(([x, y]) => (x * nx + y * ny) / length);
    const [p, q] = [over(a), over(b)];
    return Math.min(...p) >= Math.max(...q) - 1 || Math.min(...q) >= Math.max(...p) - 1;
  }));
  const faults = [];
  for (const chart of document.querySelectorAll('.chart')) {
    const svg = chart.querySelector('svg');
    if (!svg) { faults.push(`${chart.dataset.chart}: not drawn`); continue; }
    const frame = svg.getBoundingClientRect(), ground = chart.getBoundingClientRect();
    if (frame.right > ground.right + 1 || frame.left < ground.left - 1) faults.push(`${chart.dataset.chart}: wider than its place`);
    const seen = [...svg.querySelectorAll('text')].filter((text) => {
      const style = getComputedStyle(text);
      return text.textContent.trim() && style.opacity !== '0' && style.display !== 'none' && text.getBBox().width > 0;
    }).map((text) => [text.textContent, corners(text)]);
    for (const [words, shape] of seen) {
      if (shape.some(([x, y]) => x < frame.left - 1.5 || x > frame.right + 1.5 || y < frame.top - 1.5 || y > frame.bottom + 1.5)) {
        faults.push(`${chart.dataset.chart}: "${words}" is cut off`);
      }
    }
    for (let i = 0; i < seen.length; i += 1) {
      for (let j = i + 1; j < seen.length; j += 1) {
        if (!apart(seen[i][1], seen[j][1])) faults.push(`${chart.dataset.chart}: "${seen[i][0]}" lies on "${seen[j][0]}"`);
      }
    }
    const scale = frame.width / (svg.viewBox.baseVal.width || frame.width);
    if (scale < 0.8) faults.push(`${chart.dataset.chart}: shrunk to ${scale.toFixed(2)}, too small to read`);
  }
  return faults;
})()
