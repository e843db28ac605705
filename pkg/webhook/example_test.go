package webhook_test

import (
	"log"
	"net/http"
	"os"

	"github.com/volsfu/volsfu/pkg/webhook"
)

func ExampleReceiver() {
	receiver, err := webhook.NewReceiver(os.Getenv("WEBHOOK_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /volsfu", func(w http.ResponseWriter, r *http.Request) {
		event, err := receiver.Event(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if event.Kind == webhook.ParticipantLeft {
			log.Printf("%s left %s: %s", event.Participant.Identity, event.Room.Name, event.Reason)
		}
	})
	log.Fatal(http.ListenAndServe(":8000", nil))
}
