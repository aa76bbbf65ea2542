package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/spelling"
)

// Change is one thing that is done to the cluster.
type Change struct {
	Verb     string
	Operands []string
}

// String is the change as it was written.
func (c *Change) String() string { return c.Verb + " " + strings.Join(c.Operands, " ") }

// verbs by name, in the order of the help.
var verbs = []struct {
	name     string
	operands string
	make     func(*session, *Change) error
}{
	{"drain", "NODE...", (*session).drain},
	{"cordon", "NODE...", (*session).cordon},
	{"uncordon", "NODE...", (*session).uncordon},
	{"remove", "NODE...", (*session).remove},
	{"lose-zone", "ZONE...", (*session).loseZone},
	{"add-nodes", "NUMBER SHAPE", (*session).addNodes},
	{"scale", "WORKLOAD=NUMBER...", (*session).scale},
	{"apply", "FILE..., without -f,", (*session).apply},
	{"priority", "POD|WORKLOAD=NUMBER|CLASS...", (*session).priority},
	{"evict", "POD|WORKLOAD...", (*session).evict},
	{"quota", "QUOTA min:RESOURCE=QUANTITY|max:RESOURCE=QUANTITY...", (*session).quota},
}

// Verbs names what can be done.
func Verbs() (names []string) {
	for i := range verbs {
		names = append(names, verbs[i].name)
	}
	return names
}

// Parse reads changes from words: a verb, then what it is about, up to the next
// verb. Commas at the end of words, or between them, may separate changes. A
// node or pod that is called like a verb is written node/NAME or pod/NAME.
func Parse(words []string) ([]Change, error) {
	var changes []Change
	for _, word := range words {
		word = strings.Trim(word, ",")
		switch {
		case word == "":
		case slices.Contains(Verbs(), word):
			changes = append(changes, Change{Verb: word})
		case len(changes) == 0:
			return nil, fmt.Errorf("%q is no change%s; changes are %s", word, spelling.DidYouMean(word, Verbs()), strings.Join(Verbs(), ", "))
		default:
			c := &changes[len(changes)-1]
			c.Operands = append(c.Operands, word)
		}
	}
	for _, c := range changes {
		i := slices.Index(Verbs(), c.Verb)
		if len(c.Operands) == 0 {
			return nil, fmt.Errorf("%s: %s is missing", c.Verb, verbs[i].operands)
		}
		for _, o := range c.Operands {
			if c.Verb != "add-nodes" && c.Verb != "apply" && strings.Contains(o, ",") {
				return nil, fmt.Errorf("%s: %s: no name has a comma; separate names by spaces", c.Verb, o)
			}
		}
	}
	return changes, nil
}

// made makes the change.
func (s *session) made(c *Change) error {
	i := slices.Index(Verbs(), c.Verb)
	if i < 0 {
		return fmt.Errorf("%s: is no change", c.Verb)
	}
	if err := verbs[i].make(s, c); err != nil {
		return fmt.Errorf("%s: %w", c.Verb, err)
	}
	return nil
}
