/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What NCCL refuses or misreads, rule by rule. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/nccl/check.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define CPU "<cpu numaid=\"0\" arch=\"ppc64\">"
#define X86(rest) "<cpu numaid=\"0\" arch=\"x86_64\"" rest "/>"
#define LINK "link_speed=\"8 GT/s\" link_width=\"16\""
#define PCI(id, class) "<pci busid=\"" id "\" class=\"" class "\" " LINK
#define SWITCH PCI("0000:0a:00.0", "0x060400") ">"
#define GPU PCI("0000:0b:00.0", "0x030200") ">"
#define NIC PCI("0000:0c:00.0", "0x020000") ">"
#define SYSTEM(inside) "<system version=\"1\">" inside "</system>"
#define ON_CPU(inside) SYSTEM(CPU inside "</cpu>")
#define GRAPH_REST \
	"speedintra=\"12\" speedinter=\"12\" typeintra=\"PHB\" typeinter=\"PIX\" samechannels=\"1\""
#define GRAPH_HEAD "<graph id=\"0\" pattern=\"4\" crossnic=\"0\" "
#define GRAPH(n, inside)                                                                 \
	"<graphs version=\"1\">" GRAPH_HEAD "nchannels=\"" n "\" " GRAPH_REST ">" inside \
	"</graph></graphs>"
#define NET "<net dev=\"0\"/>"
#define CHANNEL "<channel>" NET "<gpu dev=\"0\"/>" NET "</channel>"

enum weight { NOTE, MISREAD, FATAL };

static void expect(const char *text, size_t length, enum weight weight, const char *why)
{
	struct ocs_nccl_report report;
	bool found = false;

	ocs_nccl_check(text, length, &report);
	for (int i = 0; i < report.faults.count; i++) {
		const struct ocs_nccl_fault *fault = &report.faults.list[i];

		if (strstr(fault->text, why)) {
			found = true;
			if (fault->error != (weight != NOTE) || fault->fatal != (weight == FATAL))
				fail_msg("%s: '%s' weighs wrong", text, fault->text);
		} else if (weight == NOTE && fault->error) {
			fail_msg("%s: %s", text, fault->text);
		}
	}
	if (!found)
		fail_msg("%s: not '%s' but '%s'", text, why,
			 report.faults.count ? report.faults.list[0].text : "nothing");
	ocs_nccl_report_free(&report);
}

static void test_accepts(void **state)
{
	static const char *const good[] = {
		ON_CPU(""),
		"\n<system version=\"1\" name=\"x\">\r\n  " CPU "\n</cpu>\n</system>\n\n",
		"<!-- a comment --><system version='1'><!----><cpu numaid='0' arch='arm64'/></system>",
		"<!--\tone\ttab\t--><!--/a/b/--><!-- a=b -->" ON_CPU(""),
		SYSTEM(X86(" vendor=\"AuthenticAMD\" familyid=\"23\" modelid=\"49\"")),
		SYSTEM(X86(" vendor=\"AuthenticAMD\"")),
		SYSTEM(X86(
			" vendor='GenuineIntel' familyid='6' modelid='0x8f' affinity='ff,ffff0000'")),
		ON_CPU(PCI("ffff:ff:01.0", "0x060400") ">" PCI("0001:00:00.0",
							       "0x030200") "/></pci>"),
		ON_CPU(PCI("10000:0a:00.0", "0x030200") " />"),
		/* two blanks are an attribute without a name */
		ON_CPU(PCI("0000:0a:00.0", "0x030200") "  vendor=\"0x10de\"  />"),
		ON_CPU(GPU
		       "<gpu dev=\"0\" sm=\"70\" rank=\"0\" gdr=\"1\"><nvlink target=\"0000:0d:00.0\" "
		       "count=\"2\" tclass=\"0x068000\"/><nvlink target=\"fffffff:ffff:ff\" count=\"1\"/>"
		       "<c2c bw=\"40000\" count=\"10\"/></gpu></pci>"),
		ON_CPU(SWITCH "<pcilink target=\"0000:0d:00.0\"/></pci>"),
		ON_CPU(NIC
		       "<nic><net name=\"mlx5_0\" speed=\"100000\"/><net name=\"mlx5_1\" "
		       "speed=\"100000\" guid=\"0x3a7\" latency=\"0.5\" port=\"1\"/></nic></pci>"
		       "<nic><net name=\"eth0\" speed=\"10000\"/></nic>"),
		GRAPH("1", CHANNEL),
		GRAPH("2",
		      CHANNEL "<channel>" NET "<gpu dev=\"0xa\"/><net dev=\"0x0\"/></channel>"),
		GRAPH("1",
		      "<channel>" NET "<gpu dev=\"0\"/><gpu dev=\"b\"/><net dev=\"f\"/></channel>"),
		GRAPH("1", "<channel><gpu dev=\"0\" rank=\"3\"/><gpu dev=\"1\"/></channel>"),
	};
	struct ocs_nccl_report report;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (ocs_nccl_check(good[i], strlen(good[i]), &report) || report.faults.count)
			fail_msg("%s: %s", good[i], report.faults.list[0].text);
		assert_int_equal(report.kind == OCS_NCCL_GRAPH, strstr(good[i], "<graphs") != NULL);
		ocs_nccl_report_free(&report);
	}
}

struct rule {
	const char *text;
	enum weight weight;
	const char *why;
};

static void expect_all(const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(rules[i].text, strlen(rules[i].text), rules[i].weight, rules[i].why);
}

/* The parser that is none of XML. */
static void test_syntax(void **state)
{
	static const struct rule rules[] = {
		{ "", MISREAD, "no <system" },
		{ "   \n", MISREAD, "no <system" },
		{ "<?xml version=\"1.0\"?>" ON_CPU(""), FATAL, "prolog" },
		{ "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n" ON_CPU(""), FATAL, "prolog" },
		{ "<?xml=1?>" ON_CPU(""), FATAL, "'=' in the name" },
		{ "<!DOCTYPE system>" ON_CPU(""), FATAL, "DOCTYPE" },
		{ "\xef\xbb\xbf" ON_CPU(""), FATAL, "byte order mark" },
		{ "<!--a=b-->" ON_CPU(""), FATAL, "comment whose first word" },
		{ "<!-- never closed", FATAL, "ends inside" },
		{ "<!--->" ON_CPU(""), FATAL, "ends inside" },
		{ ON_CPU("\t"), FATAL, "a tab" },
		{ ON_CPU("text"), FATAL, "text outside" },
		{ "<system\tversion=\"1\">" CPU "</cpu></system>", FATAL, "a tab after the name" },
		{ "<system version=\"1\"\tname=\"x\">" CPU "</cpu></system>", FATAL,
		  "tab between" },
		{ "<system version=\"1\" \tname=\"x\">" CPU "</cpu></system>", MISREAD,
		  "tab before" },
		{ "<system version=\"1\"\n name=\"x\">" CPU "</cpu></system>", FATAL,
		  "line end inside" },
		{ "<system\r\n version=\"1\">" CPU "</cpu></system>", FATAL, "line end inside" },
		{ "<system version=\"1\" \n>" CPU "</cpu></system>", FATAL, "line end inside" },
		{ "<system version=1>" CPU "</cpu></system>", FATAL, "without quotes" },
		{ "<system version= \"1\">" CPU "</cpu></system>", FATAL, "without quotes" },
		{ "<system version =\"1\">" CPU "</cpu></system>", MISREAD,
		  "without a value: version" },
		{ "<system version=\"1\"name=\"x\">" CPU "</cpu></system>", FATAL,
		  "'n' where a blank" },
		{ "<system version=\"1\" name>" CPU "</cpu></system>", MISREAD, "without a value" },
		{ "<system version=\"1\" name=\"x\" version=\"1\">" CPU "</cpu></system>", MISREAD,
		  "twice" },
		{ ON_CPU(SWITCH "</cpu></pci>"), FATAL, "</cpu> where <pci>" },
		{ SYSTEM(CPU "</cpu >"), FATAL, "closing tag is" },
		{ SYSTEM(CPU), FATAL, "</system> where <cpu> of line 1" },
		{ "<system version=\"1\">\n" CPU "</cpu>", FATAL, "<system> is never closed" },
		{ "<system version=\"1\">" CPU "</cpu></system", FATAL, "ends inside a tag" },
		{ ON_CPU("") "</system>", FATAL, "nothing open" },
		{ ON_CPU("") "</a></b>", MISREAD, "no outermost" },
		{ ON_CPU("") "</a>", FATAL, "does not know" },
		{ ON_CPU("") ON_CPU(""), MISREAD, "second <system>" },
		{ ON_CPU("<pci/ busid=\"x\">"), FATAL, "must follow '/'" },
		{ ON_CPU("<nic/nothing>"), MISREAD, "which NCCL drops: nothing" },
		{ "<machine>" ON_CPU("") "</machine>", MISREAD, "<machine> is no outermost" },
		{ SYSTEM(CPU "</cpu><gpu/>"), MISREAD, "<gpu> inside <system>" },
		{ ON_CPU("<gpu/>"), MISREAD, "<gpu> inside <cpu>" },
		{ ON_CPU("<Pci><pci></a></b>"), MISREAD, "<Pci> inside <cpu>" },
		{ ON_CPU("<odd><pci><pci>"), FATAL, "ends inside an element" },
		{ ON_CPU("< nic/>"), MISREAD, "inside <cpu>" },
	};
	static const char nul[] = "<system version=\"1\" name=\"a\0b\">" CPU "</cpu></system>";

	(void)state;
	expect_all(rules, sizeof(rules) / sizeof(rules[0]));
	expect(nul, sizeof(nul) - 1, MISREAD, "NUL byte");
}

static void test_topology(void **state)
{
	static const struct rule rules[] = {
		{ "<system version=\"2\">" CPU "</cpu></system>", FATAL, "version 2" },
		{ "<system>" CPU "</cpu></system>", FATAL, "needs version" },
		{ SYSTEM(""), MISREAD, "without a <cpu>" },
		{ SYSTEM("<cpu arch=\"ppc64\"/>"), FATAL, "needs numaid" },
		{ SYSTEM("<cpu numaid=\"zero\" arch=\"ppc64\"/>"), MISREAD,
		  "no number: NCCL reads 0" },
		{ SYSTEM("<cpu numaid=\"1x\" arch=\"ppc64\"/>"), MISREAD,
		  "no number: NCCL reads 1" },
		{ SYSTEM(CPU "</cpu>" CPU "</cpu>"), MISREAD, "is also on line 1" },
		{ SYSTEM("<cpu numaid=\"0\"/>"), NOTE, "without arch" },
		{ SYSTEM("<cpu numaid=\"0\" arch=\"ppc64\"/><cpu numaid=\"1\" arch=\"ppc64\" "
			 "affinity=\"f0\"/>"),
		  MISREAD, "<cpu> without affinity: each rank" },
		{ SYSTEM("<cpu numaid=\"0\" affinity=\"f\"/><cpu numaid=\"1\" arch=\"x86_64\" "
			 "vendor=\"AuthenticAMD\" affinity=\"f0\"/>"),
		  MISREAD, "<cpu> without arch, vendor, familyid, modelid: each rank" },
		{ SYSTEM("<cpu numaid=\"0\" arch=\"riscv\"/>"), MISREAD, "arch=\"riscv\"" },
		{ SYSTEM("<cpu numaid=\"0\" arch=\"ppc64\" affinity=\"0-3\"/>"), MISREAD,
		  "affinity" },
		{ SYSTEM("<cpu numaid=\"0\" arch=\"ppc64\" affinity=\"123456789\"/>"), MISREAD,
		  "affinity" },
		{ SYSTEM("<cpu numaid=\"0\" arch=\"ppc64\" socket=\"0\"/>"), NOTE,
		  "no attribute socket" },
		{ SYSTEM(X86("")), NOTE, "without vendor" },
		{ SYSTEM(X86(" vendor=\"Other\"")), NOTE, "none that NCCL knows" },
		{ SYSTEM(X86(" vendor=\"GenuineIntel\"")), NOTE, "without familyid" },
		{ SYSTEM(X86(" vendor=\"GenuineIntel\" familyid=\"6\"")), FATAL, "needs modelid" },
		{ ON_CPU("<pci class=\"0x060400\" " LINK "/>"), FATAL, "needs busid" },
		{ ON_CPU(PCI("0000:AB:00.0", "0x02") "/>"), MISREAD, "lower case" },
		{ ON_CPU(PCI("00000000:ab:00.0", "0x02") "/>"), MISREAD, "not written like" },
		{ ON_CPU(PCI("0000:ab:00", "0x02") "/>"), MISREAD, "not written like" },
		{ ON_CPU(PCI("ab:00.0", "0x02") "/>"), MISREAD, "not written like" },
		{ ON_CPU(PCI("0000:ab:00.0", "0x02") "/>" PCI("0000:ab:00.0", "0x02") "/>"),
		  MISREAD, "is also on line" },
		{ ON_CPU("<pci busid=\"0000:ab:00.0\" " LINK "/>"), NOTE, "without class" },
		{ ON_CPU("<pci busid=\"ffff:ff:01.0\" " LINK "/>"), FATAL, "needs class" },
		{ ON_CPU(PCI("0000:ab:00.0", "0x010802") "/>"), NOTE,
		  "takes the device for a PCI switch" },
		{ ON_CPU("<pci busid=\"0000:ab:00.0\" class=\"0x02\" link_width=\"1\"/>"), NOTE,
		  "without link_speed" },
		{ ON_CPU("<pci busid=\"0000:ab:00.0\" class=\"0x02\" link_speed=\"8 GT/s\"/>"),
		  NOTE, "without link_width" },
		{ ON_CPU("<pci busid=\"0000:ab:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"\"/>"),
		  NOTE, "16 lanes" },
		{ ON_CPU("<pci busid=\"0000:ab:00.0\" class=\"0x02\" link_speed=\"16.0 GT/s\" "
			 "link_width=\"16\"/>"),
		  MISREAD, "it counts 8 GT/s" },
		{ ON_CPU("<pci busid=\"0000:ab:00.0\" class=\"0x02\" link_speed=\"8 GT/s\" "
			 "link_width=\"x16\"/>"),
		  MISREAD, "link_width=\"x16\"" },
		{ ON_CPU(PCI("0000:ab:00.0", "0x02") " vendor=\"mellanox\"/>"), MISREAD,
		  "vendor=" },
		{ ON_CPU(PCI("0000:ab:00.0", "0x02") " keep=\"1\"/>"), MISREAD, "keep" },
		{ ON_CPU(GPU PCI("0000:0e:00.0", "0x030200") "/></pci>"), MISREAD,
		  "NCCL drops it" },
		{ ON_CPU(NIC "<nic/>" PCI("0000:0e:00.0", "0x030200") "/></pci>"), MISREAD,
		  "drops it" },
		{ ON_CPU(NIC "<nic/><nic/></pci>"), MISREAD, "second <nic>" },
		{ ON_CPU(NIC "<pcilink target=\"0000:0a:00.0\"/></pci>"), FATAL,
		  "belongs into a switch" },
		{ ON_CPU(SWITCH "<gpu dev=\"0\"/></pci>"), FATAL, "<gpu> belongs" },
		{ ON_CPU(SWITCH "<pcilink/></pci>"), FATAL, "crashes" },
		{ ON_CPU(GPU "<gpu dev=\"first\"/></pci>"), MISREAD, "dev=\"first\"" },
		{ ON_CPU(GPU "<gpu dev=\"0\"><nvlink count=\"1\"/></gpu></pci>"), FATAL,
		  "crashes" },
		{ ON_CPU(GPU "<gpu dev=\"0\"><nvlink target=\"GPU1\" count=\"1\"/></gpu></pci>"),
		  MISREAD, "no bus address" },
		{ ON_CPU(GPU "<gpu dev=\"0\"><nvlink target=\"0000:0d:00.0\"/></gpu></pci>"), FATAL,
		  "needs count" },
		{ ON_CPU(GPU "<gpu dev=\"0\"><c2c count=\"1\"/></gpu></pci>"), FATAL, "needs bw" },
		{ ON_CPU("<nic><net speed=\"1\"/></nic>"), MISREAD, "without a name" },
		{ ON_CPU("<nic><net name=\"x\"/></nic>"), NOTE, "without speed" },
		{ ON_CPU("<nic><net name=\"x\" speed=\"-1\"/></nic>"), NOTE, "10000" },
		{ ON_CPU("<nic><net name=\"x\" speed=\"fast\"/></nic>"), MISREAD,
		  "speed=\"fast\"" },
		{ ON_CPU("<nic><net name=\"x\" speed=\"1\" keep=\"1\"/></nic>"), MISREAD, "keep" },
		{ ON_CPU("<nic><net name=\"x\" speed=\"1\"/><net name=\"x\" speed=\"1\"/></nic>"),
		  MISREAD, "is also on line" },
		{ ON_CPU("<nic><net name=\"a&amp;b\" speed=\"1\"/></nic>"), NOTE, "entities" },
		{ ON_CPU(SWITCH NIC "<nic><net name=\"x\" speed=\"1\"/></nic></pci></pci>"), NOTE,
		  "without vendor and device" },
	};

	(void)state;
	expect_all(rules, sizeof(rules) / sizeof(rules[0]));
}

static void test_graph(void **state)
{
#define BAD(attributes) "<graphs version=\"1\"><graph " attributes ">" CHANNEL "</graph></graphs>"
	static const struct rule rules[] = {
		{ "<graphs version=\"2\"></graphs>", FATAL, "version 2" },
		{ "<graphs version=\"1\"></graphs>", MISREAD, "says nothing" },
		{ "<graphs version=\"1\"><channel/></graphs>", MISREAD,
		  "<channel> inside <graphs>" },
		{ BAD("pattern=\"4\" crossnic=\"0\" nchannels=\"1\" " GRAPH_REST), FATAL,
		  "needs id" },
		{ BAD("id=\"0\" crossnic=\"0\" nchannels=\"1\" " GRAPH_REST), FATAL,
		  "needs pattern" },
		{ BAD("id=\"0\" pattern=\"4\" nchannels=\"1\" " GRAPH_REST), FATAL,
		  "needs crossnic" },
		{ BAD("id=\"0\" pattern=\"4\" crossnic=\"0\" " GRAPH_REST), FATAL,
		  "needs nchannels" },
		{ BAD("id=\"0\" pattern=\"1\" crossnic=\"0\" nchannels=\"1\" " GRAPH_REST), MISREAD,
		  "a ring's is 4" },
		{ BAD("id=\"7\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" " GRAPH_REST), NOTE,
		  "no graph 7" },
		{ BAD("id=\"0\" pattern=\"4\" crossnic=\"1\" nchannels=\"1\" " GRAPH_REST), NOTE,
		  "NCCL_CROSS_NIC" },
		{ BAD(GRAPH_HEAD "speedintra=\"12\" speedinter=\"12\""), MISREAD,
		  "without a value" },
		{ BAD("id=\"0\" speedintra=\"fast\""), MISREAD, "no speed in GB/s" },
		{ BAD("id=\"0\" speedintra=\"12\""), FATAL, "needs speedinter" },
		{ BAD("id=\"0\" typeintra=\"PHB\""), FATAL, "needs typeinter" },
		{ BAD("id=\"0\" typeinter=\"NET\""), MISREAD, "NCCL reads LOC" },
		{ BAD("id=\"0\" pattern=\"4\""), FATAL, "needs samechannels" },
		{ GRAPH("2", CHANNEL), MISREAD, "nchannels is 2" },
		{ GRAPH("0", ""), NOTE, "searches one itself" },
		{ GRAPH("1", "<channel>" NET NET NET "<gpu dev=\"0\"/></channel>"), FATAL,
		  "3 nets" },
		{ GRAPH("1", "<channel>" NET "<gpu dev=\"0\"/></channel>"), MISREAD, "one net" },
		{ GRAPH("1", "<channel>" NET NET "</channel>"), MISREAD, "without a GPU" },
		{ GRAPH("1", "<channel>" NET "<gpu dev=\"0\"/><net dev=\"1\"/></channel>"), MISREAD,
		  "in both directions" },
		{ GRAPH("1", "<channel>" NET "<gpu/>" NET "</channel>"), FATAL, "needs dev" },
		{ GRAPH("1", "<channel>" NET "<gpu dev=\"g\"/>" NET "</channel>"), MISREAD,
		  "hexadecimal" },
		{ GRAPH("1", "<channel>" NET "<gpu dev=\"1\"/><gpu dev=\"0x1\"/>" NET "</channel>"),
		  MISREAD, "twice in one channel" },
		{ GRAPH("2", CHANNEL "<channel><gpu dev=\"0\"/><gpu dev=\"1\"/></channel>"), FATAL,
		  "2 GPUs in this channel, 1" },
		{ "<graphs version=\"1\">" GRAPH_HEAD "nchannels=\"1\" " GRAPH_REST ">" CHANNEL
		  "</graph>" GRAPH_HEAD "nchannels=\"1\" " GRAPH_REST ">" CHANNEL
		  "</graph></graphs>",
		  MISREAD, "graph 0 twice" },
	};
	struct ocs_text text = { 0 };

	(void)state;
	expect_all(rules, sizeof(rules) / sizeof(rules[0]));
	for (int channels = 64; channels <= 65; channels++) {
		ocs_text_add(&text,
			     "<graphs version=\"1\">" GRAPH_HEAD "nchannels=\"%d\" " GRAPH_REST ">",
			     channels);
		for (int i = 0; i < channels; i++)
			ocs_text_add(&text, CHANNEL);
		ocs_text_add(&text, "</graph></graphs>");
		if (channels == 64)
			assert_int_equal(ocs_nccl_check_text(text.data, NULL), 0);
		else
			expect(text.data, text.length, FATAL, "65 channels");
		ocs_text_free(&text);
	}
}

/* At the limit, and one past it. */
static void test_limits(void **state)
{
	struct ocs_text text = { 0 };
	struct ocs_error err = { 0 };

	(void)state;
	for (int last = 253; last <= 254; last++) {
		ocs_text_add(&text, "<system version=\"1\">" CPU);
		for (int i = 0; i < last; i++)
			ocs_text_add(&text, PCI("0000:%02x:00.0", "0x030000") "/>", i);
		ocs_text_add(&text, "</cpu></system>");
		if (last == 253)
			expect(text.data, text.length, NOTE, "255 elements leave 1 of 256");
		else
			expect(text.data, text.length, FATAL, "more than 255 elements");
		ocs_text_free(&text);
	}
	/* a value of 253 characters, of 254; a name of an attribute may have one more */
	for (int length = 253; length <= 254; length++) {
		ocs_text_add(&text, "<system version=\"1\" name=\"%0*d\">" CPU "</cpu></system>",
			     length, 0);
		assert_int_equal(ocs_nccl_check_text(text.data, &err), length == 253 ? 0 : -1);
		ocs_text_free(&text);
		ocs_text_add(&text, "<system version=\"1\" %0*d=\"x\">" CPU "</cpu></system>",
			     length + 1, 0);
		assert_int_equal(ocs_nccl_check_text(text.data, &err), length == 253 ? 0 : -1);
		ocs_text_free(&text);
		ocs_text_add(&text, "<!--%0*d -->" ON_CPU(""), length - 3, 0);
		assert_int_equal(ocs_nccl_check_text(text.data, &err), length == 253 ? 0 : -1);
		ocs_text_free(&text);
	}
	/* 16 attributes are kept; foreign ones leave no room for NCCL's own */
	for (int foreign = 10; foreign <= 16; foreign += 3) {
		ocs_text_add(&text, "<system version=\"1\"><cpu numaid=\"0\" arch=\"ppc64\"");
		for (int i = 0; i < foreign; i++)
			ocs_text_add(&text, " a%d=\"1\"", i);
		ocs_text_add(&text, "/></system>");
		if (foreign == 10)
			assert_int_equal(ocs_nccl_check_text(text.data, &err), 0);
		else
			expect(text.data, text.length, FATAL, "writes past its table");
		if (foreign == 16)
			expect(text.data, text.length, MISREAD, "more than 16 attributes");
		ocs_text_free(&text);
	}
	/* no depth is too deep to be told so */
	for (int i = 0; i < 100000; i++)
		ocs_text_add(&text, i ? "<pci>" : "<system version=\"1\">" CPU);
	expect(text.data, text.length, FATAL, "more than 255 elements");
	ocs_text_free(&text);
	for (int i = 0; i < 100000; i++)
		ocs_text_add(&text, "<odd>");
	expect(text.data, text.length, FATAL, "does not know");
	ocs_text_free(&text);
}

/* All faults of a file, each with its line. */
static void test_all_faults(void **state)
{
	static const char text[] = "<?xml version=\"1.0\"?>\n" /* 1 */
				   "<system version=\"1\">\n"
				   "<cpu numaid=\"0\"\n" /* 3 */
				   "     arch=\"ppc64\">\n"
				   "\t" SWITCH "\n"	  /* 5 */
				   "<net name=mlx5_0/>\n" /* 6, twice */
				   "</pci>\n"
				   "</cpu>\n"
				   "</system>\n";
	static const int lines[] = { 1, 3, 5, 6, 6 };
	struct ocs_nccl_report report;
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_nccl_check(text, strlen(text), &report), 5);
	assert_int_equal(report.faults.count, 5);
	for (int i = 0; i < 5; i++)
		if (report.faults.list[i].line != lines[i])
			fail_msg("line %d: %s", report.faults.list[i].line,
				 report.faults.list[i].text);
	ocs_nccl_report_free(&report);
	assert_int_equal(ocs_nccl_check_text(text, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	assert_int_equal(strncmp(err.text, "line 1: ", 8), 0);
}

/* More than can be listed: still counted, and the file is still wrong. */
static void test_several_faults(void **state)
{
	struct ocs_text text = { 0 };
	struct ocs_nccl_report report;

	(void)state;
	ocs_text_add(&text, "<system version=\"1\">" CPU);
	for (int i = 0; i < 150; i++)
		ocs_text_add(&text, "\n" PCI("0000:%02x:00.0", "0x010000") " a=\"1\"/>", i);
	ocs_text_add(&text, "\n\t</cpu></system>");
	assert_int_equal(ocs_nccl_check(text.data, text.length, &report), 1);
	assert_int_equal(report.faults.count, 100);
	assert_int_equal(report.faults.dropped, 201);
	ocs_nccl_report_free(&report);
	assert_int_equal(ocs_nccl_check_text(text.data, NULL), -1);
	ocs_text_free(&text);
}

/* No text makes the checker read past its end or loop, and none but the whole one
 * is right. */
static void test_truncated(void **state)
{
	static const char *const whole[] = {
		"<!-- c -->" ON_CPU(NIC "<nic><net name='x' speed=\"1\"/></nic></pci>"),
		GRAPH("1", CHANNEL),
	};

	(void)state;
	for (int w = 0; w < 2; w++) {
		assert_int_equal(ocs_nccl_check_text(whole[w], NULL), 0);
		for (size_t length = 0; length < strlen(whole[w]); length++) {
			struct ocs_nccl_report report;
			char *part = malloc(length + 1);

			/* exactly as much memory as text */
			memcpy(part, whole[w], length);
			part = realloc(part, length ? length : 1);
			assert_true(ocs_nccl_check(part, length, &report) > 0);
			ocs_nccl_report_free(&report);
			free(part);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts),	       cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_topology),       cmocka_unit_test(test_graph),
		cmocka_unit_test(test_limits),	       cmocka_unit_test(test_all_faults),
		cmocka_unit_test(test_several_faults), cmocka_unit_test(test_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
