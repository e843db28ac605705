// Package sessionrecord has the record with which another node continues a session.
package sessionrecord

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

// MaxRecordBytes is the maximum length of a Record as JSON. Eight publications of 15 tiles take 13 kB, and 4096
// choices about 45 kB.
const MaxRecordBytes = 64 << 10

// ErrRecord is wrapped with the first wrong field of a Record.
var ErrRecord = errors.New("invalid record of a session")

// Record is the state of a session that another node needs to continue the session.
type Record struct {
	// Join is a join with the present requests, limits and publications of the participant, and the names of room and
	// participant.
	Join   signal.Join `json:"join"`
	Joined time.Time   `json:"joined"`
	// Permissions are those that an operator has set.
	Permissions signal.SetPermissions `json:"permissions,omitzero"`
	Attributes  map[string]string     `json:"attributes,omitempty"`
	Muted       []signal.MuteState    `json:"muted,omitempty"`
	// Poses are the latest poses of the participant's objects. A new pose alone causes no new record.
	Poses       []signal.Pose       `json:"poses,omitempty"`
	Choices     []subscriber.Stored `json:"choices,omitempty"`
	Viewpoint   *signal.Viewpoint   `json:"viewpoint,omitempty"`
	Arrangement []signal.Placement  `json:"arrangement,omitempty"`
	// Traced is set if the server asked the client for the times of its frames.
	Traced bool `json:"traced,omitempty"`
	// DataReceived and DataSent are the numbers of the last reliable data messages from and to the client.
	DataReceived int64 `json:"data_received,omitempty"`
	DataSent     int64 `json:"data_sent,omitempty"`
}

// AllChoices returns all choices in an order in which they may be set.
func (c *Record) AllChoices() (list []signal.Choice) {
	for i := range c.Choices {
		list = append(list, c.Choices[i].List()...)
	}
	return list
}

// Decode decodes the state of a SessionState. The error wraps ErrRecord.
func Decode(data []byte) (*Record, error) {
	if len(data) > MaxRecordBytes {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", ErrRecord, len(data), MaxRecordBytes)
	}
	c := new(Record)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return c, nil
}

// validate returns an error for the first field that a client could not have set.
func (c *Record) validate() error {
	requests := []signal.Request{&c.Join}
	if len(c.Choices) > 0 {
		requests = append(requests, &signal.SetQuality{Choices: c.AllChoices()})
	}
	if len(c.Arrangement) > 0 {
		requests = append(requests, &signal.Arrange{Objects: c.Arrangement})
	}
	if c.Attributes != nil {
		requests = append(requests, &signal.Attributes{Attributes: c.Attributes})
	}
	if c.Viewpoint != nil {
		requests = append(requests, c.Viewpoint)
	}
	for _, m := range c.Muted {
		requests = append(requests, &signal.Mute{Publication: m.Publication})
	}
	for i := range c.Poses {
		requests = append(requests, &c.Poses[i])
	}
	for _, q := range requests {
		if err := q.Validate(); err != nil {
			return err
		}
	}
	for _, seq := range []int64{c.DataReceived, c.DataSent} {
		if seq < 0 || seq > signal.MaxSeq {
			return fmt.Errorf("the number of a data message is %d, expected 0 to %d", seq, int64(signal.MaxSeq))
		}
	}
	return nil
}

// MuteOf returns the entry of a publication in a list of muted publications.
func MuteOf(list []signal.MuteState, name string) signal.MuteState {
	for _, mute := range list {
		if mute.Publication == name {
			return mute
		}
	}
	return signal.MuteState{Publication: name}
}

// RestoredJoin returns the join with the requests of a session's record. The client repeats only some of its requests
// when it resumes. Its limits may have another start rate: that of the former link.
func (c *Record) RestoredJoin(resumed *signal.Join) *signal.Join {
	join := c.Join
	join.Header, join.Resume = resumed.Header, resumed.Resume
	if limits := resumed.BitrateLimits; limits != (signal.BitrateLimits{}) {
		join.BitrateLimits = limits
	}
	return &join
}

// RestorePublication sets the muting and the pose of a publication.
func (c *Record) RestorePublication(p *presence.Publication) {
	p.Mute = MuteOf(c.Muted, p.Ref.Publication)
	for i := range c.Poses {
		if pose := &c.Poses[i]; pose.Publication == p.Ref.Publication && p.Fits(pose) {
			p.Place.Take(pose)
		}
	}
}
