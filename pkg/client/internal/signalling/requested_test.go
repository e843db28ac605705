package signalling

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestChoicesOfEndedPublicationsMakeRoom for others. Choices for publications that exist stay.
func TestChoicesOfEndedPublicationsMakeRoom(t *testing.T) {
	t.Parallel()
	var r Requested
	ref := func(i int) volumetric.PublicationRef {
		return volumetric.PublicationRef{Participant: "bob", Publication: fmt.Sprint(i)}
	}
	first := func(other volumetric.PublicationRef) bool { return other == ref(0) || other == ref(signal.MaxChoices) }
	for i := range signal.MaxChoices + 1 {
		r.Choose([]signal.Choice{{PublicationRef: ref(i), Quality: signal.Only(0)}}, first)
	}
	messages := r.Messages(func(string) bool { return true })
	choices := messages[0].(*signal.SetQuality).Choices
	if len(choices) != 2 || !first(choices[0].PublicationRef) || !first(choices[1].PublicationRef) {
		t.Errorf("%d choices are stored, expected those of the two publications that exist", len(choices))
	}
}
