package oldpeer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
)

// messageType is the second part of a message.
type messageType int

// The types of message. The original makes an offer of its own on a hello, which no server sends; then a server would have to answer.
const (
	typeOffer     messageType = 2
	typeAnswer    messageType = 3
	typeCandidate messageType = 4
	typeQualities messageType = 7
)

// The first part of a message is a client's number by its name, and these in truth.
const (
	signaller = 1
	chooser   = 0
)

// read is the goroutine that reads the websocket. The original stops to listen when that fails, and goes on.
func (p *Peer) read(messages chan<- string) {
	defer p.running.Done()
	defer close(p.unheard)
	for {
		_, data, err := p.conn.ReadMessage()
		if err != nil {
			return
		}
		text := string(data)
		p.watchOffers(text)
		select {
		case messages <- text:
		case <-p.dead:
			return
		}
	}
}

// watchOffers notes an offer that was sent without waiting for the answer to the one before. The original would answer both, and which of the
// two the second answer is for nobody knows.
func (p *Peer) watchOffers(text string) {
	if kind, _, ok := split(text); !ok || kind != typeOffer {
		return
	}
	p.mu.Lock()
	early := p.answering
	p.answering = true
	p.counts.Offers++
	p.mu.Unlock()
	if early {
		p.note(ErrSecondOffer)
	}
}

// act is the goroutine that does what messages say, one after the other.
func (p *Peer) act(messages <-chan string) {
	defer p.running.Done()
	for {
		select {
		case text := <-messages:
			if err := p.handle(text); err != nil {
				p.fail(err)
			}
		case <-p.dead:
			return
		}
	}
}

// handle does what a message says. An error is one that the original dies of.
func (p *Peer) handle(text string) error {
	kind, payload, ok := split(text)
	if !ok {
		return fmt.Errorf("%w: %.60q has no three parts", ErrMessage, text)
	}
	switch kind {
	case typeOffer:
		return p.answer(payload)
	case typeCandidate:
		return p.addCandidate(payload)
	default:
		return fmt.Errorf("%w: type %d is not for peers", ErrMessage, kind)
	}
}

// split takes a message apart as the original does: at every "@", and what stands behind the third is lost.
func split(text string) (kind messageType, payload string, ok bool) {
	parts := strings.Split(text, "@")
	if len(parts) < 3 {
		return 0, "", false
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, "", false
	}
	return messageType(number), parts[2], true
}

// say sends a message. The original dies where it cannot.
func (p *Peer) say(first int, kind messageType, payload string) {
	if err := p.Say(fmt.Sprintf("%d@%d@%s", first, kind, payload)); err != nil {
		p.fail(fmt.Errorf("%w: type %d: %w", ErrWrite, kind, err))
	}
}

// Say sends any text.
func (p *Peer) Say(text string) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.conn.WriteMessage(websocket.TextMessage, []byte(text))
}
