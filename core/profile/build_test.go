package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// implement makes a plugin that implements the given points and does nothing there.
func implement(name string, points ...Point) *framework.Plugin {
	p := &framework.Plugin{
		Name: name,
	}
	onNode := func(*table.Table, *object.Pod, string) *decision.Status { return nil }
	for _, pt := range points {
		switch pt {
		case PreEnqueue:
			p.PreEnqueue = func(*table.Table, *object.Pod) *decision.Status { return nil }
		case QueueSort:
			p.Less = func(a, b *framework.QueuedPodInfo) bool { return false }
		case PreFilter:
			p.PreFilter = func(*table.Table, *object.Pod) framework.PreFilterResult { return framework.PreFilterResult{} }
		case Filter:
			p.Filter = func(*framework.Input, []table.Row, []framework.Verdict) {}
			p.Explain = func(*framework.Input, table.Row, framework.Verdict) decision.Blocker { return decision.Blocker{} }
		case PostFilter:
			p.PostFilter = func(*framework.PostFilterCall) framework.PostFilterResult { return framework.PostFilterResult{} }
		case PreScore:
			p.PreScore = func(*table.Table, *object.Pod) framework.PreScoreResult { return framework.PreScoreResult{} }
		case Score:
			p.Score = func(*framework.Input, []table.Row, []int64) {}
		case Reserve:
			p.Reserve = onNode
		case Permit:
			p.Permit = func(*table.Table, *object.Pod, string) framework.PermitResult { return framework.PermitResult{} }
		case PreBind:
			p.PreBind = func(*table.Table, *object.Pod, string) ([]framework.Write, *decision.Status) { return nil, nil }
		case Bind:
			p.Bind = func(*object.Pod, string) bool { return true }
		case PostBind:
			p.PostBind = func(*object.Pod, string) {}
		}
	}
	return p
}

// registryOf holds what the tests enable: Sort and Binder, which every profile needs, and plugins
// named for the points that they implement.
func registryOf() Registry {
	r := Registry{}
	for name, points := range map[string][]Point{
		"Sort": {QueueSort}, "OtherSort": {QueueSort}, "Binder": {Bind}, "OtherBinder": {Bind},
		"A": {Filter, Score}, "B": {Filter, Score}, "C": {Filter}, "D": {Score, Reserve}, "E": {Filter, Score}, "Nothing": {},
	} {
		r[name] = func(any) (*framework.Plugin, error) { return implement(name, points...), nil }
	}
	return r
}

// set reads "A B=3 -C": enabled, enabled with a weight, disabled.
func set(text string) Set {
	var s Set
	for _, word := range strings.Fields(text) {
		if name, ok := strings.CutPrefix(word, "-"); ok {
			s.Disabled = append(s.Disabled, name)
			continue
		}
		e := Enabled{Plugin: word}
		if name, weight, ok := strings.Cut(word, "="); ok {
			e.Plugin = name
			if _, err := fmt.Sscan(weight, &e.Weight); err != nil {
				panic(err)
			}
		}
		s.Enabled = append(s.Enabled, e)
	}
	return s
}

// config has Sort and Binder at their points, and what is given.
func config(multiPoint string, points map[Point]string) *Config {
	c := &Config{Name: "test", MultiPoint: set(multiPoint)}
	c.Points[QueueSort], c.Points[Bind] = set("Sort"), set("Binder")
	for pt, text := range points {
		c.Points[pt] = set(text)
	}
	return c
}

func names(plugins []*framework.Plugin) string {
	var list []string
	for _, p := range plugins {
		list = append(list, p.Name)
	}
	return strings.Join(list, " ")
}

func weights(scorers []Scorer) string {
	var list []string
	for _, s := range scorers {
		list = append(list, fmt.Sprintf("%s=%d", s.Name, s.Weight))
	}
	return strings.Join(list, " ")
}

// A point's plugins take the order and the weights that its own set and MultiPoint
// give.
func TestBuildOrdersAndWeighs(t *testing.T) {
	for _, tc := range []struct {
		name, multi, filter, score string
		wantFilter, wantScore      string
	}{
		{"the point alone", "", "B A", "A B=2", "B A", "A=1 B=2"},
		{"MultiPoint alone", "C A=3 D B", "", "", "C A B", "A=3 D=1 B=1"},
		{"a plugin without the point is passed over", "D C Nothing", "", "", "C", "D=1"},
		{"the point overrides, and comes first", "A=2 B=3 C", "C", "B=7", "C A B", "B=7 A=2"},
		{"overrides stand in the point's order", "A B C", "C A", "", "C A B", "A=1 B=1"},
		{"overrides, MultiPoint, the rest", "A B C", "E C", "", "C A B E", "A=1 B=1"},
		{"disabled at the point", "A B C D", "-B", "-A -D", "A C", "B=1"},
		{"all disabled at the point", "A B C", "-* C", "-*", "C", ""},
		{"disabled and enabled at the point", "A B C", "C -C", "", "A B C", "A=1 B=1"},
		{"disabled at MultiPoint says nothing here", "A B -A -*", "", "", "A B", "A=1 B=1"},
		{"unknown disabled", "A", "-Z", "", "A", "A=1"},
		{"the point's zero weight overrides too", "A=5 B=5", "", "A", "A B", "A=1 B=5"},
		{"what the point enables MultiPoint may repeat", "C A C", "C", "", "C A", "A=1"},
		{"what the point disables MultiPoint may repeat", "C A C", "-C", "", "A", "A=1"},
	} {
		p, err := Build(config(tc.multi, map[Point]string{Filter: tc.filter, Score: tc.score}), registryOf())
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := names(p.Filter); got != tc.wantFilter {
			t.Errorf("%s: Filter: got %q, want %q", tc.name, got, tc.wantFilter)
		}
		if got := weights(p.Score); got != tc.wantScore {
			t.Errorf("%s: Score: got %q, want %q", tc.name, got, tc.wantScore)
		}
	}
}

// A plugin that is enabled at a point stands at that point and among the profile's
// plugins.
func TestBuildFillsEveryPoint(t *testing.T) {
	registry, c := registryOf(), config("", nil)
	for pt := range PlacementGenerate {
		name := "at" + pt.String()
		registry[name] = func(any) (*framework.Plugin, error) { return implement(name, pt), nil }
		c.Points[pt] = set(name)
	}
	p, err := Build(c, registry)
	if err != nil {
		t.Fatal(err)
	}
	for pt, got := range map[Point]string{
		PreEnqueue: names(p.PreEnqueue), QueueSort: p.QueueSort.Name, PreFilter: names(p.PreFilter), Filter: names(p.Filter),
		PostFilter: names(p.PostFilter), PreScore: names(p.PreScore), Score: p.Score[0].Name, Reserve: names(p.Reserve),
		Permit: names(p.Permit), PreBind: names(p.PreBind), Bind: names(p.Bind), PostBind: names(p.PostBind),
	} {
		if want := "at" + pt.String(); got != want || p.Plugins[want] == nil {
			t.Errorf("%s: got %q, want %q", pt, got, want)
		}
	}
}

// A plugin that is enabled at Filter alone runs its PreFilter after those that are enabled there,
// once, unless it is hosted: that one runs where it is enabled.
func TestPreFilterOfFilters(t *testing.T) {
	registry := registryOf()
	for _, name := range []string{"Both", "Late", "Early", "Hosted"} {
		pl := implement(name, PreFilter, Filter)
		if name == "Hosted" {
			pl.Hosted, pl.Locality = &framework.HostedPlugin{Host: host{}}, framework.Anything
		}
		registry[name] = func(any) (*framework.Plugin, error) { return pl, nil }
	}
	p, err := Build(config("Late A Both Hosted Early", map[Point]string{PreFilter: "-* Early Both"}), registry)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(p.PreFilter); got != "Early Both Late" {
		t.Errorf("PreFilter: %q", got)
	}
}

// host runs nothing.
type host struct{ framework.Host }

// A plugin that is used is made once, with its arguments; one that is not used is not
// made.
func TestPluginsAreMadeOnceWithTheirArgs(t *testing.T) {
	made := map[string][]any{}
	registry := registryOf()
	for name, factory := range registry {
		registry[name] = func(args any) (*framework.Plugin, error) {
			made[name] = append(made[name], args)
			return factory(args)
		}
	}
	c := config("A Nothing", map[Point]string{Filter: "A C", Score: "A"})
	c.Args = []Args{{"A", 7}, {"B", 8}, {"C", nil}}
	p, err := Build(c, registry)
	if err != nil {
		t.Fatal(err)
	}
	if p.Filter[0] != p.Score[0].Plugin || p.Plugins["A"] != p.Filter[0] {
		t.Error("A is not one plugin")
	}
	if got, want := fmt.Sprint(made), "map[A:[7] Binder:[<nil>] C:[<nil>] Nothing:[<nil>] Sort:[<nil>]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(p.Plugins) != 4 || p.Plugins["Nothing"] != nil {
		t.Errorf("got %v", p.Plugins)
	}
}

// A profile that is wrong is refused, and the error names what is wrong.
func TestBuildErrors(t *testing.T) {
	registry := registryOf()
	registry["Fails"] = func(any) (*framework.Plugin, error) { return nil, errors.New("bad arguments") }
	registry["Nil"] = func(any) (*framework.Plugin, error) { return nil, nil }
	registry["Alias"] = func(any) (*framework.Plugin, error) { return implement("A", Filter), nil }
	registry["Wide"] = func(any) (*framework.Plugin, error) {
		p := implement("Wide", Score)
		p.Locality = framework.Domains
		return p, nil
	}
	registry["Celled"] = func(any) (*framework.Plugin, error) {
		p := implement("Celled", PreFilter)
		p.CellScore = &framework.CellScore{}
		return p, nil
	}
	registry["Mute"] = func(any) (*framework.Plugin, error) {
		p := implement("Mute", Filter)
		p.Explain = nil
		return p, nil
	}
	for _, tc := range []struct {
		multi  string
		points map[Point]string
		want   []string
	}{
		{"", map[Point]string{Filter: "X"}, []string{`FilterPlugin "X" does not exist`}},
		{"X", map[Point]string{Filter: "-X"}, []string{`MultiPointPlugin "X" does not exist`}},
		{"", map[Point]string{Score: "C"}, []string{`plugin "C" does not extend ScorePlugin plugin`}},
		{"", map[Point]string{PlacementScore: "A"}, []string{`plugin "A" does not extend PlacementScorePlugin plugin`}},
		{"", map[Point]string{Filter: "A B A A"}, []string{`plugin "A" already registered as "FilterPlugin"`}},
		{"C B C", nil, []string{`plugin "C" already registered as "FilterPlugin"`}},
		{"A B A", nil, []string{`plugin "A" already registered as "FilterPlugin"`, `plugin "A" already registered as "ScorePlugin"`}},
		{"", map[Point]string{QueueSort: ""}, []string{`only one queue sort plugin required for profile with scheduler name "test", but got 0`}},
		{"OtherSort", nil, []string{`only one queue sort plugin required for profile with scheduler name "test", but got 2`}},
		{"", map[Point]string{Bind: ""}, []string{`at least one bind plugin is needed for profile with scheduler name "test"`}},
		{"", map[Point]string{Score: "A=-1"}, []string{`score plugins: weight of plugin "A" must not be negative, but is -1`}},
		{"", map[Point]string{Score: fmt.Sprintf("A=%d B=%d", math.MaxInt64/200, math.MaxInt64/200+1)}, []string{"score plugins: total score of Score plugins could overflow"}},
		{"Fails Nil Alias Mute Wide Celled", nil, []string{
			`initializing plugin "Fails": bad arguments`, `initializing plugin "Nil": its factory returned no plugin`,
			`initializing plugin "Alias": it is registered under this name, but its Name is "A"`,
			`initializing plugin "Mute": it has Filter, but no Explain`,
			`initializing plugin "Wide": its Locality is Domains, which takes`,
			`initializing plugin "Celled": it has CellFilter or CellScore, but its Locality is not Domains`,
		}},
	} {
		p, err := Build(config(tc.multi, tc.points), registry)
		if err == nil || p != nil {
			t.Errorf("MultiPoint %q, %v: accepted", tc.multi, tc.points)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("MultiPoint %q, %v: error lacks %q: %v", tc.multi, tc.points, want, err)
			}
		}
		if n := strings.Count(err.Error(), ", ") + 1; len(tc.want) == 1 && n > 2 {
			t.Errorf("MultiPoint %q, %v: more than one error: %v", tc.multi, tc.points, err)
		}
	}
	c := config("", nil)
	c.Args = []Args{{"A", 1}, {"A", 2}}
	if _, err := Build(c, registry); err == nil || err.Error() != "repeated config for plugin A" {
		t.Errorf("got %v", err)
	}
}

// The largest weight whose total score does not overflow is accepted.
func TestLargestWeightsAreAccepted(t *testing.T) {
	p, err := Build(config("", map[Point]string{Score: fmt.Sprintf("A=%d B=1", math.MaxInt64/maxScore-1)}), registryOf())
	if err != nil || p.Score[0].Weight != math.MaxInt64/maxScore-1 {
		t.Errorf("got %v, %v", p, err)
	}
}

// Profiles need different names and the same queue sort with the same arguments.
func TestBuildAll(t *testing.T) {
	named := func(name string, c *Config) Config {
		c.Name = name
		return *c
	}
	args := func(value any, c *Config) *Config {
		c.Args = []Args{{"Sort", value}}
		return c
	}
	other := map[Point]string{QueueSort: "OtherSort"}
	for _, tc := range []struct {
		name    string
		configs []Config
		want    string // "" for valid
	}{
		{"two", []Config{named("a", config("A", nil)), named("b", config("B", nil))}, ""},
		{"same arguments", []Config{named("a", args([]int{1}, config("", nil))), named("b", args([]int{1}, config("", nil)))}, ""},
		{"same sort, at another point", []Config{named("a", config("", nil)), named("b", config("Sort", map[Point]string{QueueSort: ""}))}, ""},
		{"none", nil, "at least one profile is required"},
		{"no name", []Config{named("", config("A", nil))}, "scheduler name is needed"},
		{"same name", []Config{named("a", config("", nil)), named("a", config("", nil))}, `duplicate profile with scheduler name "a"`},
		{"broken ones", []Config{named("a", config("X", nil)), named("b", config("", nil)), named("c", config("Y", nil))},
			`[creating profile for scheduler name a: MultiPointPlugin "X" does not exist, creating profile for scheduler name c: MultiPointPlugin "Y" does not exist]`},
		{"other sort", []Config{named("a", config("", nil)), named("b", config("", other))}, `different queue sort plugins for profile "b": "OtherSort", first: "Sort"`},
		{"other arguments", []Config{named("a", args(1, config("", nil))), named("b", args(2, config("", nil)))}, `different queue sort plugin args for profile "b"`},
	} {
		profiles, err := BuildAll(tc.configs, registryOf())
		if tc.want != "" {
			if err == nil || err.Error() != tc.want || profiles != nil {
				t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
			}
			continue
		}
		if err != nil || len(profiles) != len(tc.configs) {
			t.Errorf("%s: got %v, %v", tc.name, profiles, err)
			continue
		}
		for i, p := range profiles {
			if p.Name != tc.configs[i].Name {
				t.Errorf("%s: profile %d is %q", tc.name, i, p.Name)
			}
		}
	}
}

// What kube-scheduler's rules mean for any configuration of one point, stated without the
// way to get there.
func TestOrderProperties(t *testing.T) {
	registry := registryOf()
	subset := func(t *rapid.T, label string, of ...string) []string {
		shuffled := rapid.Permutation(of).Draw(t, label)
		return shuffled[:rapid.IntRange(0, len(of)).Draw(t, label+" count")]
	}
	rapid.Check(t, func(t *rapid.T) {
		multi := subset(t, "multiPoint", "A", "B", "C", "D", "E", "Nothing")
		own := subset(t, "enabled", "A", "B", "C", "E")
		disabled := subset(t, "disabled", "A", "B", "C", "D", "E", "*")
		text := strings.Join(own, " ")
		for _, name := range disabled {
			text += " -" + name
		}
		p, err := Build(config(strings.Join(multi, " "), map[Point]string{Filter: text}), registry)
		if err != nil {
			t.Fatal(err)
		}
		// Each plugin has a class and, within it, a place; the result is sorted by both.
		type rank struct{ class, place int }
		ranks := map[string]rank{}
		for i, name := range multi {
			filters := slices.Contains([]string{"A", "B", "C", "E"}, name)
			if filters && !slices.Contains(disabled, name) && !slices.Contains(disabled, "*") {
				ranks[name] = rank{2, i}
			}
		}
		for i, name := range own {
			if _, both := ranks[name]; both {
				ranks[name] = rank{1, i}
			} else {
				ranks[name] = rank{3, i}
			}
		}
		var want []string
		for name := range ranks {
			want = append(want, name)
		}
		slices.SortFunc(want, func(a, b string) int {
			if d := ranks[a].class - ranks[b].class; d != 0 {
				return d
			}
			return ranks[a].place - ranks[b].place
		})
		if got := names(p.Filter); got != strings.Join(want, " ") {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// TestCellsStandForFilterAndScore: a plugin that answers by cells is enabled
// at the points that it answers for.
func TestCellsStandForFilterAndScore(t *testing.T) {
	r := registryOf()
	by := &framework.Plugin{
		Name: "Cells", SignPlugin: framework.SignPlugin{Locality: framework.Domains},
		FilterPlugin: framework.FilterPlugin{
			CellFilter: &framework.CellFilter{},
			Explain:    func(*framework.Input, table.Row, framework.Verdict) decision.Blocker { return decision.Blocker{} },
		},
		ScorePlugin: framework.ScorePlugin{CellScore: &framework.CellScore{}},
	}
	r["Cells"] = func(any) (*framework.Plugin, error) { return by, nil }
	p, err := Build(config("Cells", nil), r)
	if err != nil {
		t.Fatal(err)
	}
	if names(p.Filter) != "Cells" || len(p.Score) != 1 || p.Score[0].Plugin != by {
		t.Errorf("Filter %s, Score %v", names(p.Filter), p.Score)
	}
	by.Explain = nil
	if _, err := Build(config("Cells", nil), r); err == nil {
		t.Error("a filter that cannot explain itself was accepted")
	}
}
