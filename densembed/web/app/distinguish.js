// Titles of compared models: what distinguishes them, as in `distinguish` of
// densembed/fields/agreement.py.
/** @import { Checkpoint } from "../engine/densembed.js" */

const UNTITLED = ["model", "dataset", "device", "compile"];

/**
 * Of each model its name or kind, and as many settings as tell it from the others of that title:
 * the data first, then the settings in the order of the config. What all have in common is left
 * out.
 *
 * @param {{ name: string, checkpoint: Checkpoint }[]} models with the user's name of a run, or ""
 * @returns {string[]}
 */
export function distinguish(models) {
  const titles = models.map(({ name, checkpoint }) => [name || checkpoint.words]);
  const same = new Set(titles.map(String)).size === 1;
  const settings = models.map(({ checkpoint: { config, provenance } }) => [
    provenance.dataset_title,
    ...Object.entries(config)
      .filter(([key]) => !UNTITLED.includes(key))
      .map(([key, value]) => `${key.replaceAll("_", " ")} ${value}`),
  ]);
  for (const k of settings[0].keys()) {
    const before = titles.map(String);
    titles.forEach((parts, n) => {
      const alike = settings.filter((_, other) => before[other] === before[n]);
      if (alike.some((other) => other[k] !== settings[n][k])) parts.push(settings[n][k]);
    });
  }
  return titles.map((parts) => (same && parts.length > 1 ? parts.slice(1) : parts).join(", "));
}
