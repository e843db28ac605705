package oldpeer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
)

// messageType is the second part of a message.
type messageType int

// The message types. The original sends an offer when it receives a hello, which no server sends; the server would have
// to answer the offer.
const (
	typeOffer     messageType = 2
	typeAnswer    messageType = 3
	typeCandidate messageType = 4
	typeQualities messageType = 7
)

// The first part of a message is named client number, and contains these values.
const (
	signaller = 1
	chooser   = 0
)

// read is the goroutine that reads the websocket. The original stops reading when this fails, and continues otherwise.
func (p *Peer) read(messages chan<- string) {
	defer p.running.Done()
	defer close(p.ended)
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

// watchOffers records an offer that was sent before the answer to the previous offer. The original would answer both,
// and it is undefined to which offer the second answer belongs.
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

// act is the goroutine that processes messages in order.
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

// handle processes a message. An error stands for the end of the original.
func (p *Peer) handle(text string) error {
	kind, payload, ok := split(text)
	if !ok {
		return fmt.Errorf("%w: %.60q has fewer than three parts", ErrMessage, text)
	}
	switch kind {
	case typeOffer:
		return p.answer(payload)
	case typeCandidate:
		return p.addCandidate(payload)
	default:
		return fmt.Errorf("%w: type %d is not sent to peers", ErrMessage, kind)
	}
}

// split splits a message as the original does: at every "@", dropping everything after the third.
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

// say sends a message. The original ends if this fails.
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
