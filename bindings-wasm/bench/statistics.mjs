// Numbers of repeated measurements.

/** @param {number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median with the least and the most. @param {number[]} values */
export function spread(values) {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}
