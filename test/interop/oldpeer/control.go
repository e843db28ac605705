package oldpeer

import (
	"strconv"
	"strings"
)

// Decision says which quality is wanted of each tile of one client, by the tiles' order; -1 is off.
type Decision struct {
	// Client is whose tiles are meant. VR2Gather names client 0, whoever it means.
	Client    int
	Qualities []int
}

// controlSize is the size of the buffer in which the original gets a quality message from the connector, without the type before it. All of it is sent on.
const controlSize = 1496

// Text is a quality message as VR2Gather writes it, without anything behind the last quality.
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

// Choose sends a quality message. The NULs behind its text cost the last tile its choice on a server that does not strip them.
func (p *Peer) Choose(decisions ...Decision) {
	text := Text(decisions...)
	if !p.config.Unpadded {
		text += strings.Repeat("\x00", max(0, controlSize-len(text)))
	}
	p.say(chooser, typeQualities, text)
}
