package redundancy

import (
	"errors"
	"fmt"
)

// ErrMode is the sentinel of an unknown mode.
var ErrMode = errors.New("unknown mode of redundancy")

// Mode selects the packets that are copied.
type Mode uint8

// The modes.
const (
	// Off copies nothing.
	Off Mode = iota
	// Auto copies selected classes within a budget, and everything during an outage of the primary path.
	Auto
	// All copies everything that the second path carries.
	All
)

var modeNames = [...]string{Off: "off", Auto: "auto", All: "all"}

// String returns the name of the mode in flags and messages.
func (m Mode) String() string { return modeNames[m] }

// ParseMode returns the mode with a name, Auto if the name is empty. The error wraps ErrMode.
func ParseMode(name string) (Mode, error) {
	if name == "" {
		return Auto, nil
	}
	for mode, known := range modeNames {
		if name == known {
			return Mode(mode), nil
		}
	}
	return Off, fmt.Errorf("%w: %q, expected auto, off or all", ErrMode, name)
}

// Class is the reason for which a packet is copied.
type Class uint8

// The classes, in the order of their priority.
const (
	// Audio is every packet of audio.
	Audio Class = iota
	// Lowest is a packet of a frame of the lowest quality of a tile.
	Lowest
	// FrameEnd is the last packet of any other frame. If the packet is lost, no later packet of the frame shows the
	// loss.
	FrameEnd
	// Repair is a retransmission.
	Repair
	// Other is any other packet: copied during an outage of the primary path, in probes, and in the mode All.
	Other
	// Classes is the number of classes.
	Classes
	// Padding is a packet without use for the receiver, which is never copied.
	Padding = Classes
)

var classNames = [Classes]string{
	Audio: "audio", Lowest: "lowest_quality", FrameEnd: "frame_end", Repair: "repair", Other: "other",
}

// String returns the name of the class in metrics.
func (c Class) String() string { return classNames[c] }
