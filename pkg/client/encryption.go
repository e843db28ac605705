package client

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/client/internal/downlink"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// passphraseEpoch is the epoch of the secret from Config.Passphrase.
const passphraseEpoch e2ee.Epoch = 0

// withKeys fills in the keys, and marks the publications of the configuration as encrypted.
func (c Config) withKeys() (Config, error) {
	if c.Passphrase != "" && c.Keys == nil {
		c.Keys = new(e2ee.Keys)
	}
	marked := make([]volumetric.Publication, len(c.Publications))
	for i, publication := range c.Publications {
		var err error
		if marked[i], err = c.mark(publication); err != nil {
			return c, err
		}
	}
	c.Publications = marked
	return c, nil
}

// mark marks a publication as encrypted if the session has keys. The error wraps ErrConfig.
func (c Config) mark(p volumetric.Publication) (volumetric.Publication, error) {
	if c.Keys == nil {
		return p, nil
	}
	if p.Encryption != "" && p.Encryption != e2ee.Scheme {
		return p, fmt.Errorf("%w: publication %q has the encryption %q, expected none or %q in a session with keys",
			ErrConfig, p.Name, p.Encryption, e2ee.Scheme)
	}
	p.Encryption = e2ee.Scheme
	if err := p.Validate(); err != nil {
		return p, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return p, nil
}

// unlock makes what encrypts in the session. It needs the names of the room and of the participant, which a token may
// have set.
func (s *Session) unlock() error {
	if s.config.Keys == nil {
		return nil
	}
	if s.config.Passphrase != "" {
		secret, err := e2ee.PassphraseSecret(s.config.Passphrase, s.Room())
		if err != nil {
			return err
		}
		if err := s.config.Keys.SetSecret(passphraseEpoch, secret); err != nil {
			return err
		}
	}
	s.sealer = e2ee.NewSealer(s.config.Keys, s.Identity())
	return nil
}

// Keys returns the keys of the session, nil if nothing is encrypted.
func (s *Session) Keys() *e2ee.Keys { return s.config.Keys }

// frameData returns the data of a frame after its descriptor: the prefix, if there is one, and the data, which is
// encrypted if the session has keys. The error wraps ErrKey.
func (p *Publisher) frameData(tile int, quality volumetric.Quality, f *OutgoingFrame) ([]byte, error) {
	if p.description.VR2Gather {
		return f.Data, nil
	}
	prefix := payload.Prefix{FourCC: f.Codec, Capture: p.session.media().serverTime(f.Capture), Stamp: f.Stamp}
	data := prefix.AppendTo(make([]byte, 0, p.frameSize(len(f.Data))))
	if p.session.sealer == nil {
		return append(data, f.Data...), nil
	}
	about := e2ee.Subject{
		Publication: p.description.Name, Tile: tile, Quality: quality, Number: f.Number, Prefix: data,
	}
	return p.session.sealer.Seal(data, about, f.Data)
}

// frameSize returns the size of a frame's data after its descriptor. Encryption may add a few bytes less.
func (p *Publisher) frameSize(length int) int {
	if !p.description.VR2Gather {
		length += payload.PrefixSize
	}
	if p.session.sealer != nil {
		length += e2ee.Overhead
	}
	return length
}

// sealed returns the payloads of a frame of another codec, encrypted if the session has keys. The error wraps ErrKey.
func (p *Publisher) sealed(tile int, payloads [][]byte) ([][]byte, error) {
	if p.session.sealer == nil {
		return payloads, nil
	}
	about := e2ee.Subject{Publication: p.description.Name, Tile: tile}
	encrypted := make([][]byte, len(payloads))
	for i, data := range payloads {
		var err error
		encrypted[i], err = p.session.sealer.Seal(make([]byte, 0, len(data)+e2ee.Overhead), about, data)
		if err != nil {
			return nil, err
		}
	}
	return encrypted, nil
}

// EncryptionStats counts the encrypted frames and packets of other participants.
type EncryptionStats struct {
	// Opened counts the frames and packets that were decrypted.
	Opened uint64 `json:"opened"`
	// Refused counts the frames and packets that were not delivered, by reason.
	Refused e2ee.Refusals `json:"refused"`
}

// Encryption returns the counts of encrypted frames and packets.
func (s *Session) Encryption() EncryptionStats {
	m := s.media()
	m.mu.Lock()
	defer m.mu.Unlock()
	opened, refused := m.downlink.Encryption()
	return EncryptionStats{Opened: opened, Refused: refused}
}

// refused reports a refused frame or packet to the program, once for each publication and reason.
func (m *media) refused(r *downlink.Refusal) {
	if r.First {
		m.session.events.add(Refused{Track: r.Track, Err: r.Err})
	}
}
