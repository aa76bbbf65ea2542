package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pods that ask for a scheduler that is not this one, which may be there or be a misspelt name, are counted
// on the overview, and a link leads to them. A page of one file has them, too.
func TestOtherSchedulersInABrowser(t *testing.T) {
	c := startChromium(t)
	c.size(1280, 900, "light")
	cluster := nodeYAML
	for _, pod := range []string{"name: r1", "name: r2", "name: v"} {
		scheduler := "my-schduler"
		if pod == "name: v" {
			scheduler = "volcano"
		}
		cluster += "---\n" + strings.NewReplacer("name: p", pod, "containers", "schedulerName: "+scheduler+", containers").Replace(podYAML)
	}
	file, page := filepath.Join(t.TempDir(), "cluster.yaml"), filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := berth("", "view", "--export", page, "-f", file); status != exitPlaced {
		t.Fatal(errs)
	}
	c.enter(view(t, "-f", file))
	for _, begin := range []func(){func() {}, func() { c.open("file://" + page) }} {
		begin()
		c.route("#/")
		c.says("3 pods ask for schedulers that are not this one: my-schduler 2, volcano 1. This one is default-scheduler.")
		c.eval(`[...document.querySelectorAll("main a")].find(a => a.innerText === "my-schduler").click()`)
		c.until(`[...document.querySelectorAll("table[aria-label=Pods] tbody td:first-child")].map(x => x.innerText).join(" ") === "default/r1 default/r2"`)
		c.says(`its schedulerName is "my-schduler"`)
		if tab := c.eval(`document.querySelector("[role=tab][aria-selected=true]")?.innerText`); tab != "Other schedulers 3" {
			t.Errorf("the tab is %s", tab)
		}
		c.eval(`document.querySelector("table[aria-label=Pods] tbody a").click()`)
		c.until(`document.querySelector("[aria-label=Verdict]")?.innerText.includes('no profile has the schedulerName "my-schduler"')`)
	}
}
