package oldpeer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// answer answers an offer.
func (p *Peer) answer(payload string) error {
	var offer webrtc.SessionDescription
	if err := json.Unmarshal([]byte(payload), &offer); err != nil {
		return fmt.Errorf("%w: %w", ErrDescription, err)
	}
	if err := p.checkLines(offer.SDP); err != nil {
		p.note(err)
	}
	if err := p.connection.SetRemoteDescription(offer); err != nil {
		return fmt.Errorf("%w: %w", ErrDescription, err)
	}
	answer, err := p.connection.CreateAnswer(nil)
	if err != nil {
		return fmt.Errorf("%w: answer: %w", ErrDescription, err)
	}
	if err := p.connection.SetLocalDescription(answer); err != nil {
		return fmt.Errorf("%w: answer: %w", ErrDescription, err)
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("%w: answer: %w", ErrDescription, err)
	}
	if p.config.AnswerDelay > 0 {
		select {
		case <-time.After(p.config.AnswerDelay):
		case <-p.dead:
			return nil
		}
	}
	p.mu.Lock()
	p.answering = false
	p.counts.Answers++
	p.mu.Unlock()
	p.say(signaller, typeAnswer, string(encoded))
	return nil
}

// addCandidate adds one of the server's candidates, which is lost before the first offer: the original stores the
// candidate for an answer that never arrives.
func (p *Peer) addCandidate(payload string) error {
	lost := p.connection.RemoteDescription() == nil
	p.count(func(counts *Counts) {
		counts.Candidates++
		if lost {
			counts.LostCandidates++
		}
	})
	if lost {
		return nil
	}
	if err := p.connection.AddICECandidate(webrtc.ICECandidateInit{Candidate: payload}); err != nil {
		return fmt.Errorf("%w: %.60q: %w", ErrCandidate, payload, err)
	}
	return nil
}

// checkLines finds lines of an offer that the original would handle wrongly. With the first offer the original binds
// its tracks, first sound, then tile by tile and quality by quality, to the lines of the same kind in order: to every
// line that receives, but also to a line that only sends, on which the track is then never sent.
func (p *Peer) checkLines(description string) error {
	var parsed sdp.SessionDescription
	if err := parsed.UnmarshalString(description); err != nil {
		return fmt.Errorf("%w: %w", ErrLines, err)
	}
	if p.connection.RemoteDescription() == nil {
		own := 1 + p.config.Tiles*p.config.Qualities
		if len(parsed.MediaDescriptions) < own {
			return fmt.Errorf("%w: %d, expected at least %d in the first offer", ErrLines,
				len(parsed.MediaDescriptions), own)
		}
		for i, line := range parsed.MediaDescriptions[:own] {
			kind := "video"
			if i == 0 {
				kind = "audio"
			}
			direction := directionOf(line)
			if line.MediaName.Media != kind || direction != "recvonly" && direction != "sendrecv" {
				return fmt.Errorf("%w: line %d of the first offer is %s %s, expected %s that receives", ErrLines, i,
					line.MediaName.Media, direction, kind)
			}
		}
	}
	for i, line := range parsed.MediaDescriptions {
		if err := checkCodec(line); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrLines, i, err)
		}
	}
	return nil
}

// directionOf returns the direction of a line; sendrecv is the default (RFC 8866 section 6.7).
func directionOf(line *sdp.MediaDescription) string {
	for _, direction := range []string{"recvonly", "sendonly", "inactive"} {
		if _, ok := line.Attribute(direction); ok {
			return direction
		}
	}
	return "sendrecv"
}

// checkCodec reports whether an active line offers the original's codec with the original's payload type.
func checkCodec(line *sdp.MediaDescription) error {
	if line.MediaName.Port.Value == 0 || directionOf(line) == "inactive" {
		return nil
	}
	number := map[string]string{"video": "5", "audio": "6"}[line.MediaName.Media]
	if number == "" {
		return fmt.Errorf("media is %q, expected audio or video", line.MediaName.Media)
	}
	if !slices.Contains(line.MediaName.Formats, number) {
		return fmt.Errorf("payload types are %v, expected %s among them", line.MediaName.Formats, number)
	}
	for _, a := range line.Attributes {
		if a.Key == "rtpmap" && strings.EqualFold(strings.TrimSpace(a.Value), number+" pcm/90000") {
			return nil
		}
	}
	return fmt.Errorf("payload type %s is not pcm/90000", number)
}
