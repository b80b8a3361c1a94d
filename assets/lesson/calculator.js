// What a machine's throughput is worth. Owns: the form and its arithmetic. Must not know: cards, runs; it is given the rates.
// cost of a million tokens = price per hour / (tokens per second x 3600) x 1,000,000
// machines = users x answers per hour x tokens per answer / (tokens per second x 3600), rounded up

import { element, setText, numberText } from "../player/dom.js";

const FIELDS = [
  ["price", "Euro an hour for the machine", 2.5, 0.01],
  ["users", "People who use it", 200, 1],
  ["answers", "Answers each, an hour", 10, 0.1],
  ["tokens", "Tokens an answer", 200, 1],
];

// `rows`: [label, tokens per second] each.
export function calculatorElement(rows) {
  const root = element("div", "calculator");
  const form = element("div", "fields");
  const inputs = {};
  for (const [name, label, value, least] of FIELDS) inputs[name] = numberField(form, label, value, least);
  const table = element("table");
  const head = element("tr");
  for (const title of ["", "tokens a second", "euro per million tokens", "machines", "euro an hour"]) head.append(element("th", "", title));
  table.append(head);
  const lines = rows.map(([label, rate]) => {
    const line = element("tr");
    const cells = [element("td"), element("td"), element("td")];
    const field = element("td");
    const input = numberField(field, `Tokens a second, ${label}`, Number(rate.toFixed(1)), 0.1);
    line.append(element("th", "", label), field, ...cells);
    table.append(line);
    return { input, cells };
  });
  const work = () => {
    const wanted = (numberOf(inputs.users) * numberOf(inputs.answers) * numberOf(inputs.tokens)) / 3600;
    for (const { input, cells } of lines) {
      const found = worth(numberOf(inputs.price), numberOf(input), wanted);
      setText(cells[0], found ? found.perMillion.toFixed(2) : "–");
      setText(cells[1], found ? numberText(found.machines) : "–");
      setText(cells[2], found ? numberText(Math.round(found.perHour * 100) / 100) : "–");
    }
  };
  for (const input of [...Object.values(inputs), ...lines.map((line) => line.input)]) input.oninput = work;
  work();
  root.append(form, table);
  return root;
}

export function worth(price, rate, wanted) {
  if (!(price > 0) || !(rate > 0) || !(wanted >= 0)) return null;
  const machines = Math.max(1, Math.ceil(wanted / rate));
  return { perMillion: (price / (rate * 3600)) * 1e6, machines, perHour: machines * price };
}

function numberField(holder, label, value, least) {
  const field = element("label", "field");
  const input = element("input");
  Object.assign(input, { type: "number", min: String(least), step: "any", value: String(value) });
  input.setAttribute("aria-label", label);
  field.append(element("span", "", label), input);
  holder.append(field);
  return input;
}

function numberOf(input) {
  return Number.parseFloat(input.value);
}
