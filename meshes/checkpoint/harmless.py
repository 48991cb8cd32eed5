"""Keys of config.json that change no number that an inference step computes."""

HARMLESS = frozenset({
    # Where it comes from, and who wrote it.
    "architectures", "transformers_version", "auto_map", "name_or_path", "tokenizer_class", "task_specific_params",
    # How it was kept, trained or initialised.
    "dtype", "torch_dtype", "initializer_range", "attention_dropout", "resid_pdrop", "embd_pdrop", "hidden_dropout",
    "router_aux_loss_coef", "output_router_logits", "router_jitter_noise", "pretraining_tp", "input_jitter_noise",
    # What a window or a longer rope would read; both are looked at by themselves.
    "max_position_embeddings", "original_max_position_embeddings", "max_window_layers",
    # Tokens, and how answers are drawn.
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "use_cache",
    "id2label", "label2id", "problem_type", "finetuning_task", "return_dict", "output_attentions",
    "output_hidden_states", "chunk_size_feed_forward", "is_decoder", "is_encoder_decoder", "torchscript",
    "do_sample", "temperature", "top_k", "top_p", "typical_p", "max_length", "min_length", "num_beams",
    "num_beam_groups", "num_return_sequences", "length_penalty", "repetition_penalty", "diversity_penalty",
    "encoder_no_repeat_ngram_size", "no_repeat_ngram_size", "early_stopping", "bad_words_ids", "suppress_tokens",
    "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "return_dict_in_generate", "output_scores", "prefix",
})  # fmt: skip
