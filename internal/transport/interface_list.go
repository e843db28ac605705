package transport

import (
	"fmt"
	"sync"
	"time"

	"github.com/pion/transport/v5/stdnet"
)

// interfacesAge is the time for which a list of the host's network interfaces is used. Peers made up to a second after
// an address is added to the host may lack the address.
const interfacesAge = time.Second

// interfaceList is the list of the host's network interfaces that the ICE agents of an endpoint share. Without a shared
// list, each agent makes some system calls and keeps 8 kB. Any goroutine may call current.
type interfaceList struct {
	mu   sync.Mutex
	list *stdnet.Net
	read time.Time
}

// current returns the list. A list older than interfacesAge is replaced. A returned list does not change.
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
