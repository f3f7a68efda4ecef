/** Server-sent events from the pieces in which they arrive. */

/** Calls `onEvent(name, data)` for each whole event, and `onComment` for each comment. */
export function createParser(onEvent, onComment = () => {}) {
  let rest = "";
  let name = "";
  let data = [];

  function take(line) {
    if (line.startsWith(":")) onComment();
    else if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    else if (line === "") {
      if (data.length) onEvent(name || "message", JSON.parse(data.join("\n")));
      name = "";
      data = [];
    }
  }

  return (piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    lines.forEach(take);
  };
}
