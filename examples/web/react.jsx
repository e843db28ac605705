// The component VolsfuRoom: /react.html?server=http://127.0.0.1:8080&identity=ada

import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { VolsfuRoom } from "@volsfu/client/react";

const query = new URLSearchParams(location.search);

function App() {
  const [state, setState] = useState("connecting");
  const [points, setPoints] = useState(0);
  return (
    <main>
      <header>
        <strong>React</strong> · {state} · <span id="points">{points}</span> points per frame
      </header>
      <VolsfuRoom
        url={query.get("server") ?? "http://127.0.0.1:8080"}
        room="demo"
        identity={query.get("identity") ?? "react"}
        publish="figure"
        onJoined={({ room, identity }) => setState(`${identity} in ${room}`)}
        onLeft={({ why }) => setState(`left: ${why}`)}
        onError={({ message }) => setState(message)}
        onStatistics={({ tiles }) => setPoints(tiles.reduce((sum, tile) => sum + tile.points, 0))}
      />
    </main>
  );
}

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
