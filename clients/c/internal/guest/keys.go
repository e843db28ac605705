package guest

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/e2ee"
)

// keys returns the keys of the session. The error wraps ErrArgument if the session has none.
func (g *Guest) keys() (*e2ee.Keys, error) {
	keys := g.session.Keys()
	if keys == nil {
		return nil, fmt.Errorf("%w: the session does not encrypt, expected VOLSFU_ENCRYPT in its configuration",
			ErrArgument)
	}
	return keys, nil
}

// SetKey sets the secret of an epoch, of all participants if the identity is empty. The error wraps ErrArgument or
// e2ee.ErrSecret.
func (g *Guest) SetKey(epoch e2ee.Epoch, identity string, secret []byte) error {
	keys, err := g.keys()
	if err != nil {
		return err
	}
	if identity == "" {
		return keys.SetSecret(epoch, secret)
	}
	return keys.SetParticipantSecret(identity, epoch, secret)
}

// UseEpoch selects the epoch of published frames. The error wraps ErrArgument or e2ee.ErrSecret.
func (g *Guest) UseEpoch(epoch e2ee.Epoch) error {
	keys, err := g.keys()
	if err != nil {
		return err
	}
	return keys.Use(epoch)
}

// ForgetEpoch removes the secrets of an epoch. The error wraps ErrArgument.
func (g *Guest) ForgetEpoch(epoch e2ee.Epoch) error {
	keys, err := g.keys()
	if err != nil {
		return err
	}
	keys.Forget(epoch)
	return nil
}
