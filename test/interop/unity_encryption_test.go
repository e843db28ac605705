package interop

import (
	"context"
	"encoding/hex"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/testbed"
)

// unityCodingBridge builds volbridge with Draco and Opus, which encryption needs.
func unityCodingBridge(t *testing.T) string {
	t.Helper()
	if !draco.Available() {
		t.Skip("the bridge encrypts only with Draco, which this build lacks: make deps installs it")
	}
	return program.Build{Cgo: true}.Path(t, "volbridge")
}

// keyWatcher is a receiver in Go that counts the frames of unity-1 and those that it refuses.
type keyWatcher struct {
	session         *client.Session
	frames, refused atomic.Int64
}

func newKeyWatcher(t *testing.T, c *testbed.Conference, identity, passphrase string) *keyWatcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Join(ctx, client.Config{URL: c.Server.URL(), Room: unityRoom, Identity: identity,
		Receive: true, Passphrase: passphrase})
	if err != nil {
		t.Fatal(err)
	}
	w := &keyWatcher{session: session}
	done := make(chan struct{})
	go func() {
		defer close(done)
		frames, events := session.Frames(), session.Events()
		for frames != nil {
			select {
			case _, open := <-frames:
				if !open {
					return
				}
				w.frames.Add(1)
			case e, open := <-events:
				if !open {
					events = nil
				}
				if _, refused := e.(client.Refused); refused {
					w.refused.Add(1)
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = session.Close()
		<-done
	})
	return w
}

// more waits for frames that arrive from now on.
func (w *keyWatcher) more(t *testing.T) {
	t.Helper()
	since := w.frames.Load()
	eventually(t, "the watcher decrypts frames", func() bool { return w.frames.Load() >= since+10 })
}

// TestUnityEncryption publishes from C# with a passphrase: another program in C# and a client in Go with the passphrase
// receive the frames, and a client with another one does not. C# then rotates to a secret for the next epoch, and again
// after its bridge was killed, without using the passphrase again.
func TestUnityEncryption(t *testing.T) {
	const passphrase, secret = "correct horse", "000102030405060708090a0b0c0d0e0f"
	core, bridge := unityCore(t), unityCodingBridge(t)
	c := openConference(t, "127.0.0.1:0")
	defer c.Close()
	start := func(client string) *unityPuppet {
		p := startUnity(t, nil, core, "bridge", bridge, c.Server.URL(), unityRoom, "unity-"+client,
			strconv.Itoa(portPair(t)), client, "1", "1", "", passphrase)
		p.await(t, "event Ready")
		return p
	}
	sender, receiver := start("1"), start("2")
	sender.say("points 500")
	watcher := newKeyWatcher(t, c, "watcher", passphrase)
	watcher.more(t)
	eventually(t, "C# decrypts frames", func() bool { return len(receiver.said("frame 1 0 ")) >= 10 })
	stranger := newKeyWatcher(t, c, "stranger", "another")
	eventually(t, "a stranger refuses frames", func() bool { return stranger.refused.Load() > 0 })

	raw, err := hex.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	keys := watcher.session.Keys()
	if err := keys.SetSecret(1, raw); err != nil {
		t.Fatal(err)
	}
	rotate := func(p *unityPuppet) {
		p.say("key 1 " + secret)
		p.say("use 1")
		p.say("forget 0")
	}
	rotate(receiver)
	rotate(sender)
	keys.Forget(0)
	watcher.more(t)
	since := len(receiver.said("frame 1 0 "))
	eventually(t, "C# decrypts frames of the new epoch", func() bool {
		return len(receiver.said("frame 1 0 ")) >= since+10
	})

	sender.killBridge(t)
	watcher.more(t)
	if stranger.frames.Load() > 0 {
		t.Errorf("a stranger has decrypted %d frames", stranger.frames.Load())
	}
}
