package suites

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// The cases that need not pass on Berth, and those of a quick run.
var (
	//go:embed allowed.txt
	allowedText string
	//go:embed quick.txt
	quickText string
)

// rule names cases of a package: a test with all its subtests. A * stands for any
// text without a slash.
type rule struct {
	pkg, name string
	reason    string
	test, top *regexp.Regexp
	tried     bool // a case that it names has run
	needed    bool // one has failed on Berth
}

// parseRules reads rules. A line that begins with "= " gives the reason of those
// that follow it.
func parseRules(text string) ([]*rule, error) {
	var list []*rule
	reason := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if because, ok := strings.CutPrefix(line, "= "); ok {
			reason = because
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pkg, test, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(test, "Test") {
			return nil, fmt.Errorf("%q is not a package and a test", line)
		}
		top, _, _ := strings.Cut(test, "/")
		list = append(list, &rule{pkg: pkg, name: test, reason: reason, test: glob(test, "(/|$)"), top: glob(top, "$")})
	}
	return list, nil
}

// glob matches a name, and what may follow it.
func glob(name, after string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, "[^/]*") + after)
}

// matches tells whether the rule names a case.
func (r *rule) matches(pkg, name string) bool { return r.pkg == pkg && r.test.MatchString(name) }

// notRun begins the reason of tests that say nothing of Berth.
const notRun = "not run: "

// names tells whether the rule names a top-level test, or cases in it.
func (r *rule) names(test string) bool { return r.top.MatchString(test) }

// find returns the first rule that names a case; nil if none does.
func find(rules []*rule, pkg, name string) *rule {
	for _, r := range rules {
		if r.matches(pkg, name) {
			return r
		}
	}
	return nil
}
