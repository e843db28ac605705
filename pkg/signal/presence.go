package signal

import (
	"maps"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// MaxAttributes is the maximum number of entries of a participant's attributes and of a room's metadata.
	MaxAttributes = 32
	// MaxAttributeBytes is the maximum sum of the lengths of all names and values of such a map, in bytes.
	MaxAttributeBytes = 4 << 10
)

// Attributes changes the attributes of a participant. A client sends the entries that change; an entry with an empty
// value is deleted. The server sends the complete map.
type Attributes struct {
	Header
	// Participant is the participant. A client may omit its own name, and needs the grant admin for another name.
	Participant string            `json:"participant,omitempty"`
	Attributes  map[string]string `json:"attributes"`
}

// Metadata changes the metadata of the room, in the same way. A client needs the grant admin.
type Metadata struct {
	Header
	Metadata map[string]string `json:"metadata"`
}

// Mute mutes a publication, or ends this. The server does not forward a muted publication.
type Mute struct {
	Header
	// Participant is the publisher. A client may omit its own name, and needs the grant admin for another name.
	Participant string `json:"participant,omitempty"`
	Publication string `json:"publication"`
	Muted       bool   `json:"muted"`
}

// Muted reports a change of the muting of a publication, to all participants.
type Muted struct {
	Header
	Participant string `json:"participant"`
	MuteState
}

// MuteState is the muting of a publication. The publication is muted if one of the two is set.
type MuteState struct {
	Publication string `json:"publication"`
	// Own is set if the publisher has muted the publication, Operator if an operator has.
	Own      bool `json:"own,omitempty"`
	Operator bool `json:"operator,omitempty"`
}

// SetPermissions changes the permissions of a participant. Absent permissions do not change. A client needs the grant
// admin.
type SetPermissions struct {
	Header
	Participant string `json:"participant"`
	Publish     *bool  `json:"publish,omitempty"`
	Subscribe   *bool  `json:"subscribe,omitempty"`
	Data        *bool  `json:"data,omitempty"`
}

// PermissionsChanged tells a participant its permissions.
type PermissionsChanged struct {
	Header
	Permissions
}

// Permissions are the permissions of a participant: to publish, to receive publications, and to send data messages and
// change its attributes.
type Permissions struct {
	Publish   bool `json:"publish"`
	Subscribe bool `json:"subscribe"`
	Data      bool `json:"data"`
}

func (*Attributes) messageType() Type         { return TypeAttributes }
func (*Metadata) messageType() Type           { return TypeMetadata }
func (*Mute) messageType() Type               { return TypeMute }
func (*Muted) messageType() Type              { return TypeMuted }
func (*SetPermissions) messageType() Type     { return TypeSetPermissions }
func (*PermissionsChanged) messageType() Type { return TypePermissions }

// Validate implements Request.
func (m *Attributes) Validate() error {
	if err := optionalName("participant", m.Participant); err != nil {
		return m.reply(err)
	}
	return m.reply(checkAttributes("attributes", m.Attributes))
}

// Validate implements Request.
func (m *Metadata) Validate() error { return m.reply(checkAttributes("metadata", m.Metadata)) }

// Validate implements Request. The publication need not exist.
func (m *Mute) Validate() error {
	if err := optionalName("participant", m.Participant); err != nil {
		return m.reply(err)
	}
	return m.reply(volumetric.ValidateName("publication", m.Publication))
}

// Validate implements Request. The participant need not exist.
func (m *SetPermissions) Validate() error {
	return m.reply(volumetric.ValidateName("participant", m.Participant))
}

// MergeAttributes returns the map with the changed entries. An entry with an empty value is deleted. The error wraps
// ErrInvalid if the result exceeds a limit. Neither map is changed. what is the name of the map in errors.
func MergeAttributes(what string, present, changed map[string]string) (map[string]string, error) {
	merged := make(map[string]string, len(present)+len(changed))
	maps.Copy(merged, present)
	maps.Copy(merged, changed)
	maps.DeleteFunc(merged, func(_, value string) bool { return value == "" })
	if err := checkAttributes(what, merged); err != nil {
		return nil, err
	}
	return merged, nil
}

func checkAttributes(what string, attributes map[string]string) error {
	if attributes == nil {
		return invalid("%s is missing", what)
	}
	if len(attributes) > MaxAttributes {
		return invalid("%s has %d entries, expected at most %d", what, len(attributes), MaxAttributes)
	}
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := volumetric.ValidateName(what, name); err != nil {
			return err
		}
		bytes += len(name) + len(attributes[name])
	}
	if bytes > MaxAttributeBytes {
		return invalid("%s has %d bytes of names and values, expected at most %d", what, bytes, MaxAttributeBytes)
	}
	return nil
}
