// SPDX-License-Identifier: BSD-3-Clause
// http.js - what the server says.

// parse - JSON as Python writes it: NaN and Infinity become texts.
export function parse(text) {
  const strict = text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (part) =>
    part.startsWith('"') ? part : `"${part}"`,
  );
  return JSON.parse(strict);
}

// request - of the server; what it says of an error becomes its message. null: 404.
export async function request(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  if (answer.status === 404) return null;
  if (!answer.ok) {
    const text = (await answer.text()).trim();
    throw new Error(text || `The server answered ${answer.status} to ${address}`);
  }
  return answer;
}

export async function json(address) {
  const answer = await request(address);
  return answer && parse(await answer.text());
}

export const encode = (path) => path.split("/").map(encodeURIComponent).join("/");
