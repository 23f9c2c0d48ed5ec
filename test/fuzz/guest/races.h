// Pairs of groups that meet: each worker of a racing child keeps to one letter's calls.
static const char *const races_of[] = {
	"ma", "ma", "ma", "fu", "fu", "fa", "xk", "xm", "xf", "kw", "kwp", "pm", "pf", "pk", "io", "io", "iku", "no", "no", "na", "ta", "ta", "tm", "tma",
	"ef", "eu", "ek", "sf", "sa", "s", "sk", "Tk", "Tf", "Fm", "Fk", "vp", "vm", "vk", "Ef", "Ek", "Em", "yf", "yk", "nM", "oM", "tn", "af", "wp", "xp",
};
