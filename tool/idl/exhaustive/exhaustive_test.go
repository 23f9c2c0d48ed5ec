package exhaustive

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), Analyzer, "use", "wire", "ways")
}

func TestStrict(t *testing.T) {
	strict = true
	defer func() { strict = false }()
	analysistest.Run(t, analysistest.TestData(), Analyzer, "strict")
}
