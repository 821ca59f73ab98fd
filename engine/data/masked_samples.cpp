// SPDX-License-Identifier: Apache-2.0
#include "data/masked_samples.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "accrue/run/data/data_split.h"

namespace accrue {
namespace {

using Row = std::vector<std::int64_t>;

template <typename Item>
at::Tensor rows_of(std::span<const Item> items, Row Item::*member) {
  const std::size_t length = items.empty() ? 0 : (items.front().*member).size();
  at::Tensor rows = at::empty({static_cast<std::int64_t>(items.size()), static_cast<std::int64_t>(length)}, at::kLong);
  auto* at = rows.mutable_data_ptr<std::int64_t>();
  for (const Item& item : items) {
    if ((item.*member).size() != length) throw std::invalid_argument("the samples of a batch differ in length");
    at = std::copy((item.*member).begin(), (item.*member).end(), at);
  }
  return rows;
}

/// Labels of all items. An item with mask 0 has ignored_label.
template <typename Item>
void take_targets(Batch& batch, std::span<const Item> items) {
  batch.samples = static_cast<std::int64_t>(items.size());
  batch.targets = rows_of(items, &Item::labels);
  auto* label = batch.targets.template mutable_data_ptr<std::int64_t>();
  for (const Item& item : items)
    for (const std::int64_t counts : item.loss_mask) {
      if (counts == 0) *label = ignored_label;
      batch.items += *label++ != ignored_label;
    }
}

}  // namespace

Batch bert_batch(std::span<const BertItem> items) {
  Batch batch;
  take_targets(batch, items);
  batch.inputs = rows_of(items, &BertItem::text);
  batch.types = rows_of(items, &BertItem::types);
  batch.padding = rows_of(items, &BertItem::padding_mask);
  batch.order = at::empty({batch.samples}, at::kLong);
  auto* order = batch.order.mutable_data_ptr<std::int64_t>();
  for (const BertItem& item : items) *order++ = item.is_random ? 1 : 0;
  return batch;
}

Batch t5_batch(std::span<const T5Item> items) {
  Batch batch;
  take_targets(batch, items);
  batch.inputs = rows_of(items, &T5Item::encoder_text);
  batch.padding = rows_of(items, &T5Item::encoder_mask);
  batch.decoder_inputs = rows_of(items, &T5Item::decoder_text);
  return batch;
}

}  // namespace accrue
