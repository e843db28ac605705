// The viewer of the server in a frame: /embed.html?server=http://127.0.0.1:8080&identity=ada
// The server must allow this page's origin: signalling.allowed_origins.

const query = new URLSearchParams(location.search);
const server = new URL(query.get("server") ?? "http://127.0.0.1:8080");
const state = document.querySelector("#state");

addEventListener("message", ({ origin, data }) => {
  if (origin !== server.origin || data?.source !== "volsfu") {
    return;
  }
  const texts = {
    joined: () => `${data.identity} in ${data.room}`,
    left: () => `left ${data.why}`,
    error: () => data.message,
  };
  const text = texts[data.event]?.();
  if (text !== undefined) {
    state.textContent = text;
  }
});

const viewer = new URL("/", server);
viewer.search = new URLSearchParams({ room: "demo", identity: query.get("identity") ?? "frame", embed: location.origin });
document.querySelector("iframe").src = viewer.href;
