package codec_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
)

// other is a codec for tests only.
type other struct {
	codec.Codec
	name   string
	fourCC string
}

func (o other) Name() string         { return o.name }
func (o other) FourCC() codec.FourCC { return codec.FourCC([]byte(o.fourCC)) }

func TestUnknownCodec(t *testing.T) {
	if _, err := codec.ByName(
		"zip",
	); !errors.Is(err, codec.ErrUnknown) || !strings.Contains(err.Error(), `"zip"`) ||
		!strings.Contains(err.Error(), "raw") {
		t.Errorf("got %v, want ErrUnknown that names zip and what there is", err)
	}
	if _, err := codec.ByFourCC(codec.FourCC{'z', 'i', 0, 0xff}); !errors.Is(err, codec.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

func TestRegisterPanicsOnContradiction(t *testing.T) {
	for _, c := range []other{{name: "raw", fourCC: "xxxx"}, {name: "cooked", fourCC: "raw1"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q (%s) was registered beside raw (raw1)", c.name, c.fourCC)
				}
			}()
			codec.Register(c)
		}()
	}
	if slices.Contains(codec.Names(), "cooked") {
		t.Errorf("codecs are %v, want none of those that were refused", codec.Names())
	}
}

// registerOther registers once, however often the tests run.
var registerOther = sync.OnceFunc(func() { codec.Register(other{name: "a test's own", fourCC: "test"}) })

func TestLookupWhileRegistering(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1000 {
				if _, err := codec.ByFourCC(codec.Raw.FourCC()); err != nil {
					t.Error(err)
				}
				_ = codec.Names()
			}
		})
	}
	registerOther()
	group.Wait()
	if found, err := codec.ByName("a test's own"); err != nil || found.FourCC().String() != "test" {
		t.Errorf("got %v, %v", found, err)
	}
}
