package duplication

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"golang.org/x/net/quic"

	"github.com/volsfu/volsfu/test/traffic"
)

// quicBlock is the number of bytes of each write.
const quicBlock = 1 << 14

// quicEnding is the time limit for an endpoint to end its connections.
const quicEnding = time.Second

// sendQUIC sends bytes, a multiple of quicBlock, over a stream of QUIC. It fails if other bytes arrive.
func sendQUIC(ctx context.Context, e *traffic.Ends, size int) (err error) {
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return err
	}
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true,
		MinVersion: tls.VersionTLS13, NextProtos: []string{"volsfu"}}
	config := &quic.Config{TLSConfig: settings}
	var endpoints [2]*quic.Endpoint
	for i, at := range []struct {
		host    traffic.Host
		address netip.Addr
	}{{e.From, e.Source}, {e.To, e.Destination}} {
		own := netip.AddrPortFrom(at.address, 0).String()
		at.host.Do(func() { endpoints[i], err = quic.Listen("udp4", own, config) })
		if err != nil {
			return err
		}
		defer func() {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), quicEnding)
			defer cancel()
			// The connection has done its work: an end without the other's consent is no error.
			_ = endpoints[i].Close(ending)
		}()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	received := make(chan error, 1)
	go func() {
		err := receiveQUIC(ctx, endpoints[1], size)
		if err != nil {
			cancel(err)
		}
		received <- err
	}()
	sent := writeQUIC(ctx, endpoints[0], endpoints[1].LocalAddr().String(), config, size)
	if sent != nil {
		cancel(sent)
	}
	if err := <-received; err != nil {
		return errors.Join(err, sent)
	}
	return sent
}

// writeQUIC sends numbered blocks.
func writeQUIC(ctx context.Context, from *quic.Endpoint, to string, config *quic.Config, size int) error {
	conn, err := from.Dial(ctx, "udp4", to, config)
	if err != nil {
		return err
	}
	stream, err := conn.NewSendOnlyStream(ctx)
	if err != nil {
		return err
	}
	stream.SetWriteContext(ctx)
	block := make([]byte, quicBlock)
	for at := 0; at < size; at += len(block) {
		binary.BigEndian.PutUint64(block, uint64(at))
		if _, err := stream.Write(block); err != nil {
			return err
		}
	}
	// Close waits until the other end has all data.
	return stream.Close()
}

// receiveQUIC reads and compares the blocks.
func receiveQUIC(ctx context.Context, at *quic.Endpoint, size int) error {
	conn, err := at.Accept(ctx)
	if err != nil {
		return err
	}
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		return err
	}
	stream.SetReadContext(ctx)
	block := make([]byte, quicBlock)
	for at := 0; at < size; at += len(block) {
		if _, err := io.ReadFull(stream, block); err != nil {
			return err
		}
		if got := binary.BigEndian.Uint64(block); got != uint64(at) {
			return fmt.Errorf("block %d arrived at byte %d", got, at)
		}
	}
	if _, err := stream.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("expected the end after %d bytes: %w", size, err)
	}
	return nil
}
