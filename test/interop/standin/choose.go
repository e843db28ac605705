package standin

import (
	"strconv"
	"strings"
)

// choose processes a quality message: decisions separated by ";", each with a client and the quality of each tile.
// Client 0 means every client with so many tiles.
func (m *member) choose(payload string) {
	if !m.sfu.config.Faults.StrictNumbers {
		payload = strings.Trim(payload, "\x00 ")
	}
	for _, decision := range strings.Split(payload, ";") {
		fields := strings.Split(decision, ",")
		client, err := strconv.Atoi(fields[0])
		if err != nil {
			continue
		}
		for tile, field := range fields[1:] {
			quality, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			m.chooseTile(client, len(fields)-1, tile, quality)
		}
	}
}

// chooseTile sets the wanted quality of a tile. A quality that does not exist is ignored.
func (m *member) chooseTile(client, tiles, tile, quality int) {
	for from, o := range m.outlets {
		other := m.sfu.members[from.client]
		if other == nil || from.tile != tile || quality >= other.qualities {
			continue
		}
		unnamed := client == 0 && !m.sfu.config.Faults.StrictNumbers && other.tiles == tiles
		if from.client == client || unnamed {
			o.wanted = max(quality, off)
		}
	}
}
