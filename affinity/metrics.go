package affinity

// Metrics in the style of runtime/metrics: a fixed list of names with their
// units, read all at once into samples that the caller keeps.

// Description says what a metric is.
type Description struct {
	Name        string // path and unit, as in runtime/metrics
	Description string
	Cumulative  bool
}

// Sample is a metric's name and, after Read, its value.
type Sample struct {
	Name  string
	Value uint64
	Known bool // the name is a metric, and the program was built by "hardtack go"
}

var metricList = []Description{
	{"/affinity/channels:channels", "Channels that were busy lately.", false},
	{"/affinity/contended:touches", "Touches from another P that found somebody waiting for the channel.", true},
	{"/affinity/cross:touches", "Touches from another P than the one before.", true},
	{"/affinity/decisions:decisions", "Decisions taken by the policy.", true},
	{"/affinity/groups/together:groups", "Groups of goroutines that are kept on one P.", false},
	{"/affinity/pinned:processes", "1 while the process is bound to fewer cores.", false},
	{"/affinity/touches:touches", "Lock acquisitions of channels, as of each channel's last window.", true},
	{"/affinity/vote/all:channels", "Channels that had a vote in the last period.", false},
	{"/affinity/vote/yes:channels", "Channels that voted for fewer cores in the last period.", false},
}

// All lists the metrics by name.
func All() []Description { return append([]Description(nil), metricList...) }

// Read fills the samples. It does not allocate after the first call unless
// "/affinity/channels:channels" is among them.
func Read(samples []Sample) {
	if !Available() {
		for i := range samples {
			samples[i].Value, samples[i].Known = 0, false
		}
		return
	}
	touches, cross, contended, decisions := hooks.totals()
	pinned, groups, yes, voters := hooks.state()
	for i := range samples {
		s := &samples[i]
		s.Known = true
		switch s.Name {
		case "/affinity/touches:touches":
			s.Value = touches
		case "/affinity/cross:touches":
			s.Value = cross
		case "/affinity/contended:touches":
			s.Value = contended
		case "/affinity/channels:channels":
			s.Value = uint64(hooks.channels(make([]runtimeChannel, 1023)))
		case "/affinity/decisions:decisions":
			s.Value = decisions
		case "/affinity/groups/together:groups":
			s.Value = uint64(groups)
		case "/affinity/pinned:processes":
			s.Value = 0
			if pinned {
				s.Value = 1
			}
		case "/affinity/vote/yes:channels":
			s.Value = uint64(yes)
		case "/affinity/vote/all:channels":
			s.Value = uint64(voters)
		default:
			s.Value, s.Known = 0, false
		}
	}
}
