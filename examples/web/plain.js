// The element <volsfu-room> on a plain page: /?server=http://127.0.0.1:8080&identity=ada

import "@volsfu/client/element";

const query = new URLSearchParams(location.search);
const room = document.querySelector("volsfu-room");
const people = new Map();

room.addEventListener("participant", ({ detail: { identity, name, present } }) => {
  if (present && identity !== room.session?.identity) {
    people.set(identity, name);
  } else {
    people.delete(identity);
  }
  document.querySelector("#people").textContent = [...people.values()].join(", ") || "no other person is here yet";
});

room.setAttribute("identity", query.get("identity") ?? `guest-${crypto.randomUUID().slice(0, 4)}`);
room.setAttribute("token", query.get("token") ?? "");
// With the address of the server, the element enters the room.
room.setAttribute("url", query.get("server") ?? "http://127.0.0.1:8080");
