package signal

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Validate implements Request. The names of the publications must be unique.
func (m *Join) Validate() error { return m.reply(m.check()) }

func (m *Join) check() error {
	if m.Version != Version {
		return NewError(CodeVersion, fmt.Sprintf("version is %d, expected %d", m.Version, Version))
	}
	if err := optionalName("room", m.Room); err != nil {
		return err
	}
	if err := optionalName("identity", m.Identity); err != nil {
		return err
	}
	least, most := MinDeadline.Milliseconds(), MaxDeadline.Milliseconds()
	if ms := int64(m.DeadlineMS); ms != 0 && (ms < least || ms > most) {
		return invalid("deadline_ms is %d, expected 0 or %d to %d", ms, least, most)
	}
	if err := m.BitrateLimits.check(); err != nil {
		return err
	}
	if len(m.Publications) > MaxPublications {
		return invalid("%d publications, expected at most %d", len(m.Publications), MaxPublications)
	}
	seen := make(map[string]bool, len(m.Publications))
	for i := range m.Publications {
		p := &m.Publications[i]
		if err := checkPublication(p); err != nil {
			return err
		}
		if seen[p.Name] {
			return NewError(CodeExists, fmt.Sprintf("publication %q occurs more than once", p.Name))
		}
		seen[p.Name] = true
	}
	if m.Multipath != nil {
		switch m.Multipath.Redundancy {
		case "", RedundancyAuto, RedundancyOff, RedundancyAll:
		default:
			return invalid("multipath.redundancy is %q, expected %q, %q or %q",
				m.Multipath.Redundancy, RedundancyAuto, RedundancyOff, RedundancyAll)
		}
	}
	if err := checkLength("region", m.Region, 0, MaxRegionLength); err != nil {
		return err
	}
	if err := checkLength("ticket", m.Ticket, 0, MaxSecretLength); err != nil {
		return err
	}
	if m.Resume == nil {
		return nil
	}
	if n := m.Resume.DataReceived; n != nil && (*n < 0 || *n > MaxSeq) {
		return invalid("resume.data_received is %d, expected 0 to %d", *n, int64(MaxSeq))
	}
	if err := checkLength("resume.session", m.Resume.Session, 1, MaxSessionLength); err != nil {
		return err
	}
	return checkLength("resume.secret", m.Resume.Secret, 1, MaxSecretLength)
}

// Validate implements Request.
func (m *Publish) Validate() error { return m.reply(checkPublication(&m.Publication)) }

// Validate implements Request.
func (m *Unpublish) Validate() error {
	return m.reply(volumetric.ValidateName("publication", m.Publication))
}

// Validate implements Request. It does not parse the session description.
func (m *Answer) Validate() error {
	if m.Offer < 0 {
		return m.reply(invalid("offer is %d, expected 0 or more", m.Offer))
	}
	return m.reply(checkLength("sdp", m.SDP, 1, MaxMessageBytes))
}

// Validate implements Request. An empty candidate marks the end of the candidates.
func (m *Candidate) Validate() error {
	if m.LineIndex < 0 || m.LineIndex >= MaxSlots {
		return m.reply(invalid("line_index is %d, expected 0 to %d", m.LineIndex, MaxSlots-1))
	}
	if err := checkLength("candidate", m.Candidate, 0, MaxCandidateLength); err != nil {
		return m.reply(err)
	}
	return m.reply(checkLength("mid", m.MID, 0, MaxMIDLength))
}

// Validate implements Request. The publications, tiles and qualities need not exist, because
// choices may precede them.
func (m *SetQuality) Validate() error { return m.reply(m.check()) }

func (m *SetQuality) check() error {
	if err := checkList("choices", "choices", m.Choices, MaxChoices); err != nil {
		return err
	}
	for i := range m.Choices {
		if err := m.Choices[i].check(); err != nil {
			return fmt.Errorf("choice %d: %w", i, err)
		}
	}
	return nil
}

func (c *Choice) check() error {
	if err := volumetric.ValidateName("participant", c.Participant); err != nil {
		return err
	}
	if err := volumetric.ValidateName("publication", c.Publication); err != nil {
		return err
	}
	if c.Tile != nil {
		if err := checkTile(*c.Tile); err != nil {
			return err
		}
	}
	for _, q := range c.Quality.Qualities {
		if q < 0 || q >= volumetric.MaxQualities {
			return invalid("quality is %d, expected %d to %d", q, volumetric.QualityOff, volumetric.MaxQualities-1)
		}
	}
	return nil
}

func checkTile(tile int) error {
	if tile < 0 || tile >= volumetric.MaxTiles {
		return invalid("tile is %d, expected 0 to %d", tile, volumetric.MaxTiles-1)
	}
	return nil
}

// checkList checks that a list is present and has at most limit entries. key is the list's name in the message, entries
// the name of its entries in errors.
func checkList[T any](key, entries string, list []T, limit int) error {
	if list == nil {
		return invalid("%s is missing", key)
	}
	if len(list) > limit {
		return invalid("%d %s, expected at most %d", len(list), entries, limit)
	}
	return nil
}

// Validate implements Request. The generations need not be current, because an acknowledgement may
// cross a new assignment.
func (m *Acknowledge) Validate() error {
	if err := checkList("slots", "slots", m.Slots, MaxSlots); err != nil {
		return m.reply(err)
	}
	for _, slot := range m.Slots {
		if err := checkLength("mid", slot.MID, 1, MaxMIDLength); err != nil {
			return m.reply(err)
		}
	}
	return nil
}

// Validate implements Request. Every stamp is valid.
func (m *Time) Validate() error { return nil }

// Validate implements Request. The message has no fields to check.
func (m *Leave) Validate() error { return nil }

// mediaType matches a media type name as in RFC 6838 section 4.2. The name is written to session
// descriptions, in which a line break would start a line chosen by the publisher.
var mediaType = regexp.MustCompile(`^(?i:video|audio)/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$`)

// checkPublication extends the validation in package volumetric: a publication from the network
// must not inject content into the messages sent to others.
func checkPublication(p *volumetric.Publication) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if !mediaType.MatchString(p.Codec.MIMEType) {
		return invalid(
			"publication %q: mime_type is %q, expected a media type such as %q",
			p.Name,
			p.Codec.MIMEType,
			volumetric.MIMEVolumetric,
		)
	}
	if len(p.Codec.Format) > MaxFormatLength ||
		strings.ContainsFunc(p.Codec.Format, func(r rune) bool { return r < ' ' || r > '~' }) {
		return invalid(
			"publication %q: fmtp is %.64q, expected at most %d printable ASCII characters",
			p.Name,
			p.Codec.Format,
			MaxFormatLength,
		)
	}
	for i, tile := range p.Tiles {
		if err := optionalName(fmt.Sprintf("tile %d", i), tile.Label); err != nil {
			return err
		}
		if err := checkBox(fmt.Sprintf("publication %q: box of tile %d", p.Name, i), &p.Tiles[i].Box); err != nil {
			return err
		}
	}
	for i, level := range p.Qualities {
		if err := optionalName(fmt.Sprintf("quality %d", i), level.Name); err != nil {
			return err
		}
		if err := checkBitrate(
			fmt.Sprintf("publication %q: bitrate_bps of quality %d", p.Name, i),
			level.Bitrate,
		); err != nil {
			return err
		}
	}
	return nil
}

// reply converts an error to the reply to the request.
func (h *Header) reply(err error) error {
	if err == nil {
		return nil
	}
	return ErrorFor(h.ID, err)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

func optionalName(what, name string) error {
	if name == "" {
		return nil
	}
	return volumetric.ValidateName(what, name)
}

func checkLength(what, text string, least, most int) error {
	if len(text) < least || len(text) > most {
		return invalid("%s has %d bytes, expected %d to %d", what, len(text), least, most)
	}
	return nil
}
