#include <gtest/gtest.h>

#include "analysis/writers/grid.h"
#include "core/base/error.h"
#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

TEST(Csv, FieldsAreQuotedAsRfc4180Says) {
  const Grid grid{{"plain", "with,comma", "with \"quotes\""}, {{"a", "", "x\ny"}, {" b ", "c\rd", "\""}}, {}};
  EXPECT_EQ(csv(grid),
            "plain,\"with,comma\",\"with \"\"quotes\"\"\"\n"
            "a,,\"x\ny\"\n"
            " b ,\"c\rd\",\"\"\"\"\n");
}

TEST(Csv, LabelsWithCommasSurvive) {
  Sweep sweep({points("variant", "row", {"RoPE, theta \"5e5\""})});
  sweep.record({0}, 0.5, 0.5);
  EXPECT_NE(sweep.text(Format::csv, Form::longer).find("\n\"RoPE, theta \"\"5e5\"\"\",accuracy,test,32,"), std::string::npos);
}

TEST(Markdown, PipesAndLineBreaksAreHarmless) {
  EXPECT_EQ(markdown({{"a|b"}, {{"x\ny\\"}}, {}}), "| a\\|b |\n| --- |\n| x y\\\\ |\n");
}

TEST(Aligned, ColumnsLineUpByCharacters) {
  EXPECT_EQ(aligned({{"name", "n"}, {{"S\xC3\xA9l", "1"}, {"x", "22"}}, {}}), "name   n\nS\xC3\xA9l    1\nx      22\n");
}

Sweep sample() {
  Sweep sweep({points("variant", "row", {"NoPE", "Selective"}), points("task", "column", {"S2", "A3"}),
               values("lr", "select", "optimizer.lr", {0.002, 0.005, 0.01}),
               values("seed", "replicate", "seed", {0, 1, 2})});
  const double spread[] = {-0.02, 0.0, 0.02};
  for (const results::ManifestTrial& trial : sweep.manifest.trials) {
    const auto& at = trial.at;
    const double level = 0.5 + 0.3 * static_cast<double>(at[0]) - 0.1 * static_cast<double>(std::abs(at[2] - 1)) +
                         0.12 * static_cast<double>(at[1]);
    auto& record = sweep.record(at, level, level + spread[at[3]]);
    record.summary = {{"step_ms", 4.1}, {"steps_to_solve", at[3] == 0 ? nan : 250.0}, {"spikes", 2.0}, {"clipped_share", 0.25}};
  }
  sweep.manifest.table["baseline"] = "NoPE";
  return sweep;
}

/// Nothing was measured beside the sweep (costs_test.cpp).
const std::string cost_head =
    "parameters_ratio,training_ms,training_ratio,prefill_ms,prefill_ratio,decode_ms,decode_low_ms,decode_high_ms,decode_ratio,state_bytes,"
    "state_ratio,training_bytes,training_bytes_ratio,decoding_bytes,decoding_bytes_ratio,";
const std::string no_costs = "1.0000,NA,NA,NA,NA,NA,NA,NA,NA,NA,NA,NA,NA,NA,NA,";

TEST(Forms, Long) {
  const std::string head =
      "variant,task,metric,split,slice,optimizer.lr,n,expected,diverged,failed,missing,mean,sd,half_width,low,high,median,min,max,"
      "solved,solved_low,solved_high,baseline,diff,diff_low,diff_high,pairs,p,p_holm,parameters,step_ms,step_ratio,spikes,"
      "clipped_share,trials," + cost_head + "flags,tied,select_split,select_metric,select_slice,select_at,select_direction,select_seeds,select_step\n";
  const std::string trials = ",3,3,0,0,0,", unsolved = ",0,0.0000,0.5615,";
  const std::string cost = "1000,4.1,1.00,2.0000,0.2500,9," + no_costs + ",1,", rule = "valid,accuracy,32,final,maximise,same as reported,100\n";
  const std::string above = "NoPE,0.3000,0.3000,0.3000,3,0.2500,0.5000,";
  EXPECT_EQ(sample().text(Format::csv, Form::longer),
            head + "NoPE,S2,accuracy,test,32,0.005" + trials + "0.5000,0.0200,0.0497,0.1253,0.8747,0.5000,0.4800,0.5200" + unsolved +
                ",,,,,,," + cost + rule + "NoPE,A3,accuracy,test,32,0.005" + trials +
                "0.6200,0.0200,0.0497,0.1827,0.9225,0.6200,0.6000,0.6400" + unsolved + ",,,,,,," + cost + rule +
                "Selective,S2,accuracy,test,32,0.005" + trials + "0.8000,0.0200,0.0497,0.2877,0.9754,0.8000,0.7800,0.8200" +
                unsolved + above + cost + rule + "Selective,A3,accuracy,test,32,0.005" + trials +
                "0.9200,0.0200,0.0497,0.3728,0.9955,0.9200,0.9000,0.9400" + unsolved + above + cost + rule);
}

TEST(Forms, Wide) {
  const auto heads = [](const std::string& task) {
    std::string text;
    for (const std::string name : {"mean", "sd", "n", "solved", "optimizer.lr", "flags", "parameters", "step_ms", "step_ratio"}) text += task + "." + name + ",";
    for (std::size_t begin = 0, end = 0; (end = cost_head.find(',', begin)) != std::string::npos; begin = end + 1)
      text += task + "." + cost_head.substr(begin, end - begin) + ",";
    return text;
  };
  const std::string cost = ",1000,4.1,1.00," + no_costs;
  const std::string rule = "accuracy,test,32,valid,accuracy,32,final,maximise,same as reported\n";
  EXPECT_EQ(sample().text(Format::csv, Form::wide),
            "variant," + heads("S2") + heads("A3") + "metric,split,slice,select_split,select_metric,select_slice,select_at,select_direction,select_seeds\n" +
                "NoPE,0.5000,0.0200,3,0,0.005," + cost + "0.6200,0.0200,3,0,0.005," + cost + rule +
                "Selective,0.8000,0.0200,3,0,0.005," + cost + "0.9200,0.0200,3,0,0.005," + cost + rule);
}

TEST(Forms, Trials) {
  const std::string text = sample().text(Format::csv, Form::trials);
  const auto lines = read_csv(text);
  ASSERT_EQ(lines.size(), 36u);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "variant,task,optimizer.lr,seed,status,message,test.accuracy@32,select_value,select_step,chosen,steps_to_solve,"
            "step_ms,spikes,clipped_share,parameters,id,file,select_split,select_metric,select_slice,select_at,select_direction,select_seeds");
  EXPECT_EQ(lines[4].at("optimizer.lr"), "0.005");
  EXPECT_EQ(lines[4].at("seed"), "1");
  EXPECT_EQ(lines[4].at("status"), "done");
  EXPECT_EQ(lines[4].at("chosen"), "yes");
  EXPECT_EQ(lines[4].at("steps_to_solve"), "250");
  EXPECT_EQ(lines[3].at("steps_to_solve"), "nan");
  EXPECT_EQ(lines[4].at("file"), "t-0-0-1-1.h5");
  EXPECT_EQ(lines[0].at("chosen"), "no");
}

TEST(Forms, MarkdownHasTheDigitsOfTheCsv) {
  const std::string text = sample().text(Format::markdown, Form::wide);
  EXPECT_NE(text.find("| Selective | 0.8000 \xC2\xB1 0.0200  0/3 | 0.9200 \xC2\xB1 0.0200  0/3 | 1,000 | 1.00x |\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("**seeds**: chosen on valid of the same seeds that are reported on test"), std::string::npos);
  const std::string longer = sample().text(Format::markdown, Form::longer);
  EXPECT_NE(longer.find("| Selective | A3 | accuracy | test | 32 | 0.005 | 3 | 3 | 0 | 0 | 0 | 0.9200 | 0.0200 |"),
            std::string::npos);
  EXPECT_NE(longer.find("**seeds**"), std::string::npos);
}

TEST(Forms, Terminal) {
  EXPECT_EQ(sample().text(Format::terminal, Form::wide),
            "accuracy on test at length 32: mean +- sd (n-1) over 3 seeds at the last evaluation, solved (>= .95)\n"
            "\n"
            "variant           S2                    A3                    parameters   step\n"
            "NoPE (baseline)   .5000 +- .0200  0/3   .6200 +- .0200  0/3   1,000        1.00x\n"
            "Selective         .8000 +- .0200  0/3   .9200 +- .0200  0/3   1,000        1.00x\n"
            "\n"
            "chosen optimizer.lr   S2      A3\n"
            "NoPE                  0.005   0.005\n"
            "Selective             0.005   0.005\n"
            "\n"
            "test    no row can differ from NoPE at p < .05: with 3 seeds the smallest possible p is .25, .5 after Holm\n"
            "        paired sign-flip over common seeds, Holm over 2 comparisons (rows x columns at primary)\n"
            "lr      chosen per cell on valid.accuracy@32, final, maximise the mean; ties: lowest\n"
            "seeds   chosen on valid of the same seeds that are reported on test: the means are biased upward\n"
            "trials  36 expected, 36 done, 0 diverged, 0 failed, 0 missing; 18 a row\n"
            "data    rows shared with training were not measured in 36 trials\n"
            "build   1 commit, 1 processor, 1 device\n"
            "note    no trial measured valid.loss, so it broke no ties\n");
}

TEST(Forms, LongListsAreCutAndSaySo) {
  std::vector<double> seeds;
  for (int i = 0; i < 25; ++i) seeds.push_back(i);
  Sweep sweep({values("seed", "replicate", "seed", seeds)});
  const std::string text = sweep.text(Format::terminal, Form::wide);
  EXPECT_NE(text.find("missing   seed 19\n"), std::string::npos);
  EXPECT_EQ(text.find("missing   seed 20\n"), std::string::npos);
  EXPECT_NE(text.find("and 5 more, all in --form trials\n"), std::string::npos);
  EXPECT_EQ(unfinished(sweep.table()).size(), 25u);
}

TEST(Forms, AnAxisNamedLikeAColumnIsRefused) {
  Sweep sweep({points("n", "row", {"A"})});
  sweep.record({0}, 0.5, 0.5);
  EXPECT_EQ(refusal([&] { sweep.text(Format::csv, Form::longer); }),
            "table: two columns are named \"n\"; rename the axis of that name");
}

TEST(Forms, NamesAreRead) {
  EXPECT_EQ(read_form("long"), Form::longer);
  EXPECT_EQ(read_format("markdown"), Format::markdown);
  EXPECT_THROW(read_form("tall"), UserError);
  EXPECT_THROW(read_format("xlsx"), UserError);
}

}  // namespace
}  // namespace phasor::analysis
