package transport

import (
	"fmt"
	"sync"
	"time"

	"github.com/pion/transport/v5/stdnet"
)

// interfacesAge is how long a list of the host's network interfaces serves. An address that is added to the host reaches
// the candidates of peers made a second later.
const interfacesAge = time.Second

// interfaceList is the list of the host's network interfaces that the ICE agents of an endpoint share. An agent without a
// shared list reads its own with some system calls and keeps 8 kB of it. Any goroutine may call current.
type interfaceList struct {
	mu   sync.Mutex
	list *stdnet.Net
	read time.Time
}

// current returns the list, which it reads again if the list is older than interfacesAge. The list never changes.
func (i *interfaceList) current(now time.Time) (*stdnet.Net, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.list != nil && now.Sub(i.read) < interfacesAge {
		return i.list, nil
	}
	list, err := stdnet.NewNet()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	i.list, i.read = list, now
	return list, nil
}
