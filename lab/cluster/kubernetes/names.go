package kubernetes

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"
)

// domain is the domain of the cluster.
const domain = "cluster.local"

// names answers queries for the addresses of services. The records are replaced as a whole.
type names struct {
	records atomic.Pointer[map[string][]netip.Addr]
	socket  net.PacketConn
	done    chan struct{}
}

// recordTTL is the time in seconds for which a resolver may keep a record, that of CoreDNS.
const recordTTL = 5

// maxQuery is the size of the largest query that is read.
const maxQuery = 1232

// listenNames answers queries at the UDP port 53 of an address.
func listenNames(address netip.Addr) (*names, error) {
	socket, err := net.ListenPacket("udp", netip.AddrPortFrom(address, 53).String())
	if err != nil {
		return nil, err
	}
	n := &names{socket: socket, done: make(chan struct{})}
	n.records.Store(&map[string][]netip.Addr{})
	go n.serve()
	return n, nil
}

func (n *names) serve() {
	defer close(n.done)
	query := make([]byte, maxQuery)
	for {
		length, from, err := n.socket.ReadFrom(query)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if reply, err := answer(query[:length], *n.records.Load()); err == nil {
			_, _ = n.socket.WriteTo(reply, from)
		}
	}
}

func (n *names) close() {
	_ = n.socket.Close()
	<-n.done
}

// answer returns the reply to a query. Names without records do not exist. Errors are those of malformed queries.
func answer(query []byte, records map[string][]netip.Addr) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := p.Question()
	if err != nil {
		return nil, err
	}
	addresses := records[strings.ToLower(question.Name.String())]
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired,
			RecursionAvailable: true},
		Questions: []dnsmessage.Question{question},
	}
	if len(addresses) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addresses {
		if question.Type == dnsmessage.TypeA && a.Is4() {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: recordTTL},
				Body:   &dnsmessage.AResource{A: a.As4()},
			})
		}
	}
	return reply.Pack()
}

// recordsOf returns the records of services: SERVICE.NAMESPACE.svc.DOMAIN. has all addresses, and
// HOSTNAME.SERVICE.NAMESPACE.svc.DOMAIN. those of one pod.
func recordsOf(slices []EndpointSlice) map[string][]netip.Addr {
	records := make(map[string][]netip.Addr)
	for _, s := range slices {
		service := s.Metadata.Labels["kubernetes.io/service-name"] + "." + s.Metadata.Namespace + ".svc." + domain + "."
		for _, e := range s.Endpoints {
			if ready := e.Conditions.Ready; ready != nil && !*ready {
				continue
			}
			for _, text := range e.Addresses {
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				records[service] = append(records[service], address)
				if e.Hostname != "" {
					records[e.Hostname+"."+service] = append(records[e.Hostname+"."+service], address)
				}
			}
		}
	}
	return records
}
