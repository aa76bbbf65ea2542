package recording

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// The numbers of kinds are those that format.md gives: records that were
// written before a kind was added stay readable.
func TestKindsHaveTheNumbersOfTheFormat(t *testing.T) {
	text, err := os.ReadFile("format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), " Kinds: ")
	list, _, found := strings.Cut(list, ".")
	if !found {
		t.Fatal("format.md has no list of kinds")
	}
	var numbered []string
	for k := kindPod; k.known(); k++ {
		numbered = append(numbered, fmt.Sprintf("%d %s", k, decode.Of(k.empty()).Name))
	}
	if got := strings.Join(numbered, ", "); got != list {
		t.Errorf("kinds are\n%s\nand format.md says\n%s", got, list)
	}
	for k := range object.Kinds {
		if back, ok := objectOf(numberOf(k)); !ok || back != k {
			t.Errorf("%s has the number %d, which is %s (%v)", k, numberOf(k), back, ok)
		}
	}
	if k, ok := objectOf(kindStatefulSet); ok {
		t.Errorf("a stateful set is %s", k)
	}
}
