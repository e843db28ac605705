package server

import (
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// onlyNode is the node of this server, which handles the joins that no other node of a cluster handles. onlyNode
// implements signalling.Locator and signalling.Node.
type onlyNode struct{ node *sfu.Node }

// Locate implements signalling.Locator.
func (n onlyNode) Locate(*sfu.JoinRequest) signalling.Node { return n }

// Join implements signalling.Node.
func (n onlyNode) Join(q sfu.JoinRequest) (signalling.Session, *signal.Error) {
	session, refused := n.node.Join(q)
	if refused != nil {
		return nil, refused
	}
	return session, nil
}
