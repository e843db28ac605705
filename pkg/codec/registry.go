package codec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// registry holds the codecs of this program. It is written while packages initialise and read ever
// after, by any goroutine.
var registry struct {
	sync.RWMutex
	codecs []Codec
}

// Register makes a codec known by its name and its FourCC. Packages of codecs call it when they are
// initialised. It panics where either is taken: two packages of one program contradict each other.
func Register(c Codec) {
	registry.Lock()
	defer registry.Unlock()
	for _, other := range registry.codecs {
		if other.Name() == c.Name() || other.FourCC() == c.FourCC() {
			panic(
				fmt.Sprintf(
					"codec: %q (%s) is registered after %q (%s): names and FourCCs must differ",
					c.Name(),
					c.FourCC(),
					other.Name(),
					other.FourCC(),
				),
			)
		}
	}
	registry.codecs = append(registry.codecs, c)
}

// ByName finds a codec by its name, or gives an error around ErrUnknown.
func ByName(name string) (Codec, error) {
	return find(fmt.Sprintf("%.32q", name), func(c Codec) bool { return c.Name() == name })
}

// ByFourCC finds the codec of a frame, or gives an error around ErrUnknown.
func ByFourCC(fourCC FourCC) (Codec, error) {
	return find(fmt.Sprintf("FourCC %q", fourCC), func(c Codec) bool { return c.FourCC() == fourCC })
}

func find(what string, matches func(Codec) bool) (Codec, error) {
	registry.RLock()
	i := slices.IndexFunc(registry.codecs, matches)
	var found Codec
	if i >= 0 {
		found = registry.codecs[i]
	}
	registry.RUnlock()
	if found == nil {
		return nil, fmt.Errorf("%w: %s, expected one of %s", ErrUnknown, what, strings.Join(Names(), ", "))
	}
	return found, nil
}

// Names are the names of the codecs of this program, sorted.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	names := make([]string, 0, len(registry.codecs))
	for _, c := range registry.codecs {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	return names
}
