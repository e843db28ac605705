package trunk

import (
	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// catalog has the publications that trunks carry. The Host changes the catalog, the links read it.
type catalog struct {
	publications map[publication]*local
	mirrors      map[mirrorKey]*mirror
	// numbered is the number of the last mirror.
	numbered uint32
	// changes are the changes of publications that the links have not followed.
	changes changes
}

// local is a publication of this node, or one of another node that this node passes on.
type local struct {
	offered
	tracks []*track.Track
	rates  []volumetric.Bitrate
	gaveUp []allocate.QualitySet
	// tree has the nodes that take the publication, nil unless this node is the home.
	tree *tree
	// relay is nil if this node is the home.
	relay *relay
}

// mirrorKey identifies a publication of another node. While a publisher moves, the publication has two homes with an ID
// of each.
type mirrorKey struct {
	node        string
	publication publication
}

// mirror is a publication of another node.
type mirror struct {
	// number is the Origin of the packets (packetlog.Packet).
	number      uint32
	node        string
	publication publication
	qualities   int
	tracks      []*track.Track
	// take is the last demand of this node, nil before the first.
	take *take
	feed *feed
	// trails has the hops of frames that are not complete.
	trails trails
	// rates, gaveUp and masked are the last states that the home or the parent has sent.
	rates          []volumetric.Bitrate
	gaveUp, masked []allocate.QualitySet
	// passed is the publication for the nodes to which this node passes the mirror on, nil if there are none.
	passed *local
}

func newCatalog() *catalog {
	return &catalog{
		publications: map[publication]*local{}, mirrors: map[mirrorKey]*mirror{},
		changes: changes{
			demand: map[*mirror]struct{}{}, states: map[publication]stateSet{}, unsettled: map[*mirror]struct{}{},
			trees: map[publication]struct{}{},
		},
	}
}

// mirror returns the mirror of a publication whose home is a node, nil if there is none.
func (c *catalog) mirror(node string, p publication) *mirror {
	return c.mirrors[mirrorKey{node, p}]
}

func publicationOf(room string, ref volumetric.PublicationRef, id uint64) publication {
	return publication{Room: room, Participant: ref.Participant, Publication: ref.Publication, ID: id}
}
