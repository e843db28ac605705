package trunk

import (
	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// catalog has the publications that trunks carry. The Host changes the catalog, the links read it.
type catalog struct {
	publications map[publication]*local
	mirrors      map[mirrorName]*mirror
}

// local is a publication of this node.
type local struct {
	offered
	tracks []*track.Track
	rates  []volumetric.Bitrate
	gaveUp []allocate.QualitySet
}

// mirrorName names a publication of another node, whichever node is its home.
type mirrorName struct {
	room string
	ref  volumetric.PublicationRef
}

// mirror is a publication of another node.
type mirror struct {
	node        string
	publication publication
	qualities   int
	tracks      []*track.Track
	// take is the last demand, nil before the first.
	take *take
}

func newCatalog() *catalog {
	return &catalog{publications: map[publication]*local{}, mirrors: map[mirrorName]*mirror{}}
}

// mirror returns the mirror of a publication whose home is a node, nil if there is none.
func (c *catalog) mirror(node string, p publication) *mirror {
	m := c.mirrors[mirrorName{p.Room, p.ref()}]
	if m == nil || m.node != node || m.publication != p {
		return nil
	}
	return m
}

func publicationOf(room string, ref volumetric.PublicationRef, id uint64) publication {
	return publication{Room: room, Participant: ref.Participant, Publication: ref.Publication, ID: id}
}
