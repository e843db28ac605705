package oldpeer

import (
	"strconv"
	"strings"
)

// Decision is the wanted quality of each tile of one client, in the order of the tiles; -1 is off.
type Decision struct {
	// Client is the client whose tiles are meant. VR2Gather always uses client 0.
	Client    int
	Qualities []int
}

// controlSize is the size of the buffer in which the original gets a quality message from the connector, without the
// preceding type. The whole buffer is sent.
const controlSize = 1496

// Text returns a quality message in VR2Gather's format, without any bytes after the last quality.
func Text(decisions ...Decision) string {
	var parts []string
	for _, d := range decisions {
		fields := []string{strconv.Itoa(d.Client)}
		for _, q := range d.Qualities {
			fields = append(fields, strconv.Itoa(q))
		}
		parts = append(parts, strings.Join(fields, ","))
	}
	return strings.Join(parts, ";")
}

// Choose sends a quality message. On a server that does not strip the NULs after the text, the last tile's choice is
// lost.
func (p *Peer) Choose(decisions ...Decision) {
	text := Text(decisions...)
	if !p.config.Unpadded {
		text += strings.Repeat("\x00", max(0, controlSize-len(text)))
	}
	p.say(chooser, typeQualities, text)
}
