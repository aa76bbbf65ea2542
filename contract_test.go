package berth

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
)

// mostContract is how many fields a plugin may have, for its contract to be read in one
// sitting.
const mostContract = 35

// docs/plugins.md teaches each field of a plugin, and they are few.
func TestPluginContractIsTaught(t *testing.T) {
	text, err := os.ReadFile("docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, contract, _ := strings.Cut(string(text), "## The whole contract")
	fields := 0
	for _, f := range reflect.VisibleFields(reflect.TypeFor[framework.Plugin]()) {
		if f.Anonymous {
			continue
		}
		if fields++; !strings.Contains(contract, "`"+f.Name+"`") {
			t.Errorf("docs/plugins.md does not teach %s", f.Name)
		}
	}
	if fields > mostContract {
		t.Errorf("a plugin has %d fields, more than %d", fields, mostContract)
	}
}
