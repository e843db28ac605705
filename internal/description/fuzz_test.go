package description

import (
	"errors"
	"reflect"
	"testing"
)

// FuzzParse checks that what is parsed can be written and parsed again to the same, that whatever was parsed can be answered or is refused with
// ErrDescription, and that an answer fits its offer.
func FuzzParse(f *testing.F) {
	for _, text := range []string{twoLines, chromeAnswer, firefoxAnswer, chromeOffer, offerOfFour().Marshal(), answerOfFour(f).Marshal(), "v=0\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrDescription) {
				t.Fatalf("got %v, expected ErrDescription", err)
			}
			return
		}
		again, err := Parse(d.Marshal())
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, d.Marshal())
		}
		if !reflect.DeepEqual(again, d) {
			t.Fatalf("got\n%+v\nwant\n%+v\nof\n%s", again, d, d.Marshal())
		}
		answer, err := Answer(d, nil)
		if err != nil {
			if !errors.Is(err, ErrDescription) {
				t.Fatalf("got %v, expected ErrDescription", err)
			}
			return
		}
		role := answer.Transport.Role
		answer.Transport = plausible()
		if answer.Transport.Role = role; role == "" {
			return
		}
		if err := CheckAnswer(d, answer); err != nil {
			t.Fatalf("%v\noffer  %+v\nanswer %+v", err, d, answer)
		}
	})
}
