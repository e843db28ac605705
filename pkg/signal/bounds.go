package signal

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// bound limits a type of message before it becomes Go values: three bytes of a list, as in "{},", become 152 as a publication, so that 2 MiB would be 100 MB by the
// time that Validate counts them.
type bound struct {
	// bytes is the length of the whole message, entries that of each list in it, 0 where nothing is made of lists.
	bytes, entries int
}

// bounds are those of the messages from clients that may be long. Lengths below are of messages as real clients write them.
var bounds = map[Type]bound{
	// A description has about 1 kB per line, and receivers have hundreds of lines.
	TypeAnswer: {bytes: MaxMessageBytes},
	// Eight publications of 64 tiles have 59 kB, and 140 kB with the longest labels.
	TypeJoin: {512 << 10, volumetric.MaxTiles},
	// One of 256 tiles has 30 kB, and 300 kB where all labels are as long as can be, of characters that JSON writes as six.
	TypePublish: {512 << 10, volumetric.MaxTiles},
	// 4096 choices have 270 kB, and 900 kB with names of 80 bytes.
	TypeSetQuality: {1 << 20, MaxChoices},
	// 4096 slots have 140 kB.
	TypeAcknowledge: {512 << 10, MaxSlots},
	// 4096 tracks have 190 kB.
	TypeUplink: {512 << 10, MaxGaveUp},
	// 1024 frames have 160 kB, and 380 kB where each is of another track and names are as long as can be.
	TypeFrameTimes: {512 << 10, MaxFrameTimes},
	// 1024 objects have 200 kB, and 450 kB where names are as long as can be.
	TypeArrange: {512 << 10, MaxPlacements},
	// 256 boxes have 36 kB with all digits that a float64 has.
	TypePose: {128 << 10, volumetric.MaxTiles},
}

// shortMessage bounds the others in bytes: a candidate and its mid have 7 kB where they are as long as can be, of characters that JSON writes as six.
const shortMessage = 16 << 10

// boundOf is that of a type.
func boundOf(t Type) bound {
	if b, ok := bounds[t]; ok {
		return b
	}
	return bound{bytes: shortMessage}
}

// MaxBytes is how long a message of a type may be that a client sends, in bytes.
func MaxBytes(t Type) int { return boundOf(t).bytes }

// withinBounds refuses messages that are longer than one of the type may be, or have longer lists. The data are valid JSON.
func withinBounds(t Type, data []byte) error {
	b := boundOf(t)
	if len(data) > b.bytes {
		return fmt.Errorf("%w: one of type %q has %d bytes, expected at most %d", ErrTooLarge, t, len(data), b.bytes)
	}
	if b.entries == 0 {
		return nil
	}
	if n := longestList(data); n > b.entries {
		return fmt.Errorf("%w of type %q: a list has %d entries, expected at most %d", ErrInvalid, t, n, b.entries)
	}
	return nil
}

// longestList is the number of entries of the longest list in valid JSON, wherever it stands; an empty one counts as one of one entry.
func longestList(data []byte) int {
	// How many entries each list has so far that is open, -1 for objects. encoding/json reads nothing that is deeper than 10,000.
	var shallow [64]int
	open, longest := shallow[:0], 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = closingQuote(data, i)
		case '{':
			open = append(open, -1)
		case '[':
			open = append(open, 1)
		case ',':
			if top := len(open) - 1; open[top] > 0 {
				open[top]++
			}
		case ']', '}':
			top := len(open) - 1
			longest = max(longest, open[top])
			open = open[:top]
		}
	}
	return longest
}

// closingQuote is where a text ends that begins at that place.
func closingQuote(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at
}
